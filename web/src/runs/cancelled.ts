// What a cancel did to the steps of a run: which of them ended in one commit, what their agents
// answered, and whose code may still run. From the plane's receipts alone. Pure.
import { count } from "@/look/format";
import { plain } from "@/look/plain";
import { type Row } from "./folds";
import { type Forest, type Step, has } from "./forest";

export type Receipts = { told: number; stopped: number; still_running: number; not_told: number; unanswered: number; partial?: boolean };

/** What the agents of these answered: told are those that did; what runs no more has stopped. */
export function tallied(receipts: Iterable<string | null | undefined>): Receipts {
  const found = { told: 0, stopped: 0, still_running: 0, not_told: 0, unanswered: 0 };
  for (const word of receipts) {
    const key = word === "not_active" ? "stopped" : word;
    if (key === "stopped" || key === "still_running") found.told += 1;
    if (key === "stopped" || key === "still_running" || key === "not_told" || key === "unanswered") found[key] += 1;
  }
  return found;
}

/** `told 9, stopped 7, still running 2, not known 1`; nothing when there was nobody to tell. */
export function receiptWords({ told, stopped, still_running, not_told, unanswered, partial }: Receipts): string {
  const unknown = not_told + unanswered;
  if (told + unknown === 0) return "";
  const least = partial ? "≥ " : "";
  const parts = [`told ${least}${count(told)}`];
  if (told > 0) parts.push(`stopped ${least}${count(stopped)}`);
  if (still_running > 0) parts.push(`still running ${least}${count(still_running)}`);
  if (unknown > 0) parts.push(`not known ${least}${count(unknown)}`);
  return parts.join(", ");
}

/** Whether the code of one that ended goes on, in words; `null` where it does not, or nobody asks. */
export function codeWords(step: Step): string | null {
  if (!has(step, "codeMayRun")) return null;
  if (step.receipt === "still_running") return "code still runs";
  if (step.receipt === "not_told") return "code may still run: its agent was not told";
  if (step.receipt === "unanswered") return "code may still run: its agent has not answered";
  return "code may still run";
}

/** Steps that one cancel ended. */
export type Cancel = { at: number; members: readonly number[]; /** The member whose caller is none of them. */ top: number; text: string };

export function cancelsOf(forest: Forest): Cancel[] {
  const together = new Map<number, number[]>();
  for (const step of forest.steps) {
    if (step.state !== "cancelled" || step.ended === null) continue;
    const members = together.get(step.ended);
    if (members) members.push(step.index);
    else together.set(step.ended, [step.index]);
  }
  return [...together].filter(([, members]) => members.length > 1).sort(([a], [b]) => a - b).map(([at, members]) => {
    const inside = new Set(members);
    const top = members.find((index) => !inside.has(forest.steps[index]?.parent ?? -1)) ?? (members[0] as number);
    return { at, members, top, text: cancelText(forest, members, top) };
  });
}

/** `by ci-bot, 12 ended in one commit: told 9, stopped 7, still running 2`. */
function cancelText(forest: Forest, members: readonly number[], top: number): string {
  const said = /^cancelled (by .+)$/s.exec(forest.steps[top]?.why ?? "")?.[1];
  const by = said === undefined ? "" : `${plain(said)}${said.includes(": ") ? " · " : ", "}`;
  const told = receiptWords(tallied(members.map((index) => forest.steps[index]?.receipt)));
  return `${by}${count(members.length)} ended in one commit${told && `: ${told}`}`;
}

/** The rows that a bracket spans: from the first that shows a member to the last; `null`: none is shown. */
export function spanOf(cancel: Cancel, rows: readonly Row[]): { first: number; last: number } | null {
  const inside = new Set(cancel.members);
  let first = -1;
  let last = -1;
  for (const [at, row] of rows.entries()) {
    const shows = row.kind === "step" ? inside.has(row.index) : row.kind === "group" && row.members.some((index) => inside.has(index));
    if (!shows) continue;
    if (first < 0) first = at;
    last = at;
  }
  return first < 0 ? null : { first, last };
}
