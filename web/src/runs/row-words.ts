// What a row says in words: for titles and for whoever does not see the picture. Pure.
import { duration, shortId } from "@/look/format";
import { leftNow } from "@/look/left";
import { plain } from "@/look/plain";
import { codeWords } from "./cancelled";
import { type Forest, type Step, has, isOpen, nameOf, tookOf } from "./forest";

/** The word by which a step is drawn: its state, or a finer one that has a look of its own. */
export function lookWord(step: Step): string {
  if (isOpen(step) && step.reason === "awaiting_agent_restart") return "absorbed";
  if (has(step, "replayed")) return "reused";
  return step.state;
}

/** What it waits for or why it ended so, and before all that its code goes on; else nothing. */
export function whyOf(step: Step): string | null {
  return [codeWords(step), reasonOf(step)].filter(Boolean).join(" · ") || null;
}

function reasonOf(step: Step): string | null {
  if (has(step, "replayed")) return step.replayOf ? `reused from ${shortId(step.replayOf)}` : "reused";
  if (step.why) return plain(step.why);
  if (isOpen(step) && step.state !== "running") return step.reason ? step.reason.replaceAll("_", " ") : null;
  if (step.state === "failed" || step.state === "timeout") return [step.category, step.reason].filter((word, at, all) => word && all.indexOf(word) === at).join(", ") || null;
  return null;
}

/** Everything that a row shows, as one sentence. */
export function sentence(forest: Forest, step: Step, now: number): string {
  const why = whyOf(step);
  const parts = [plain(nameOf(forest, step)), lookWord(step).replaceAll("_", " "), why !== null && isOpen(step) ? leftNow(why, step.saidAt, now) : why, `${duration(tookOf(step, now))}${isOpen(step) ? " so far" : ""}`];
  if (step.attempts > 1) parts.push(`${step.attempts} attempts`);
  if (has(step, "detached")) parts.push("detached from its caller");
  if (has(step, "observed")) parts.push("reported by the agent, not dispatched");
  if (has(step, "inferredEnd")) parts.push("its end is inferred");
  if (has(step, "overCap")) parts.push("over the cap: its caller holds a slot");
  if (has(step, "lateOutcome")) parts.push("an outcome came after its end: kept, not applied");
  if (has(step, "stoppedKnowing")) parts.push("nobody knows how it ended");
  if (has(step, "replayed")) parts.push(`reused from ${step.replayOf ?? "another execution"}`);
  return parts.filter(Boolean).join(" · ");
}
