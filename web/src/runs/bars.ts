// What is drawn of one step's time: stretches with a kind, and marks. From stored times alone; what
// no segment covers is unknown, and is drawn as that. Knows nothing of pixels or colours.
import { type Step, has, isOpen, lastKnown } from "./forest";

export type BarKind =
  | "queued" | "dispatch" | "running" | "absorbed" | "person" | "child" | "paused" | "unknown" | "observed";

export type Bar = {
  kind: BarKind;
  from: number;
  to: number;
  /** It goes on: its right end is drawn open. */
  open: boolean;
};

export type MarkKind =
  /** Reused from another run: it took no time. */
  | "reused"
  /** Waited for a restart once, and got through. */
  | "absorbed"
  /** Nobody knows how it ended. */
  | "doubt"
  | "timeout" | "cancelled" | "failed" | "late" | "over_cap"
  /** A person decided. */
  | "decided"
  /** The n-th time it was sent. */
  | "attempt"
  | "detached"
  /** Its end was inferred. */
  | "inferred"
  /** It ended, and its code goes on, or may. */
  | "code_runs";

export type Mark = { kind: MarkKind; at: number; text?: string };

export type Drawn = { bars: Bar[]; marks: Mark[] };

const KINDS: Record<string, BarKind> = {
  queued: "queued", dispatch: "dispatch", running: "running", absorbed: "absorbed",
  waiting_person: "person", waiting_child: "child", paused: "paused",
};

/** Shorter gaps are the rounding of stored times. */
const ROUNDING_MS = 1;

export function drawn(step: Step, now: number): Drawn {
  const marks: Mark[] = [];
  const open = isOpen(step);
  const end = step.ended ?? (open ? Math.max(now, lastKnown(step)) : lastKnown(step));
  if (has(step, "replayed")) {
    return { bars: [], marks: [{ kind: "reused", at: step.created }] };
  }
  const bars: Bar[] = [];
  let at = step.created;
  const sorted = [...step.segments].sort((a, b) => a[1] - b[1]);
  for (const [word, from, to] of sorted) {
    const until = Math.min(to ?? end, end);
    if (from - at > ROUNDING_MS) bars.push({ kind: "unknown", from: at, to: from, open: false });
    const kind = has(step, "observed") && word === "running" ? "observed" : (KINDS[word] ?? "unknown");
    bars.push({ kind, from, to: Math.max(from, until), open: to === null && open });
    at = Math.max(at, until);
  }
  const last = bars.at(-1);
  if (end - at > ROUNDING_MS && !(last?.open ?? false)) bars.push({ kind: "unknown", from: at, to: end, open });
  addMarks(step, bars, end, marks);
  return { bars, marks };
}

function addMarks(step: Step, bars: Bar[], end: number, marks: Mark[]): void {
  if (has(step, "detached")) marks.push({ kind: "detached", at: step.created });
  if (has(step, "overCap")) marks.push({ kind: "over_cap", at: step.started ?? step.created });
  const waited = bars.find((bar) => bar.kind === "absorbed" && !bar.open);
  if (waited) marks.push({ kind: "absorbed", at: waited.to });
  for (const bar of bars) if (bar.kind === "person" && !bar.open) marks.push({ kind: "decided", at: bar.to });
  if (step.attempts > 1) {
    const sendings = bars.filter((bar) => bar.kind === "dispatch");
    for (const [n, bar] of sendings.entries()) marks.push({ kind: "attempt", at: bar.from, text: String(n + 1) });
    if (sendings.length === 0) marks.push({ kind: "attempt", at: step.started ?? step.created, text: `${step.attempts}×` });
  }
  if (has(step, "stoppedKnowing") && step.state !== "timeout") marks.push({ kind: "doubt", at: end });
  else if (step.state === "timeout") marks.push({ kind: "timeout", at: end });
  else if (step.state === "failed") marks.push({ kind: "failed", at: end });
  else if (step.state === "cancelled") marks.push({ kind: "cancelled", at: end });
  if (has(step, "inferredEnd")) marks.push({ kind: "inferred", at: end });
  if (has(step, "codeMayRun")) marks.push({ kind: "code_runs", at: end, text: step.receipt === "still_running" ? undefined : "?" });
  if (has(step, "lateOutcome")) marks.push({ kind: "late", at: end });
}

/** How the end of its work is drawn: the colour of the bars of a step that has ended. */
export type EndLook = "open" | "ok" | "fail" | "doubt" | "time" | "neutral";

export function endLook(step: Step): EndLook {
  if (isOpen(step)) return "open";
  // A clock that ran out is known; only what became of the work is not.
  if (has(step, "stoppedKnowing") && step.state !== "timeout") return "doubt";
  switch (step.state) {
    case "succeeded": return "ok";
    case "failed": return "fail";
    case "timeout": return "time";
    default: return "neutral";
  }
}

/** How much of a group went on at each of `count` equal parts of a stretch, and the worst of it. */
export type Bucket = { active: number; worst: "fail" | "wait" | "run" | "ok" | "neutral" };
const WORST = ["neutral", "ok", "run", "wait", "fail"] as const;

/** `placeAt` maps a time to 0…1 of what is in sight. */
export function buckets(steps: readonly Step[], count: number, placeAt: (time: number) => number, now: number): (Bucket | null)[] {
  const active = new Int32Array(count + 1);
  const worst = new Int8Array(count).fill(-1);
  for (const step of steps) {
    if (has(step, "replayed")) continue;
    const open = isOpen(step);
    const until = step.ended ?? (open ? now : lastKnown(step));
    const from = Math.floor(placeAt(step.created) * count);
    const to = Math.floor(placeAt(until) * count);
    if (to < 0 || from >= count) continue;
    const first = Math.max(0, from);
    const last = Math.min(count - 1, Math.max(first, to));
    active[first] = (active[first] ?? 0) + 1;
    active[last + 1] = (active[last + 1] ?? 0) - 1;
    const look = lookRank(step, open);
    // A failure counts where it ended; everything else over its whole time.
    const begin = look === 4 && to < count ? last : first;
    for (let at = begin; at <= last; at++) if ((worst[at] ?? -1) < look) worst[at] = look;
    if (look === 4) for (let at = first; at < begin; at++) if ((worst[at] ?? -1) < 1) worst[at] = 0;
  }
  const drawnBuckets: (Bucket | null)[] = [];
  let level = 0;
  for (let at = 0; at < count; at++) {
    level += active[at] ?? 0;
    drawnBuckets.push(level > 0 ? { active: level, worst: WORST[Math.max(0, worst[at] ?? 0)] ?? "neutral" } : null);
  }
  return drawnBuckets;
}

function lookRank(step: Step, open: boolean): number {
  if (step.state === "failed" || step.state === "timeout") return 4;
  if (!open) return step.state === "succeeded" ? 1 : 0;
  if (step.state === "waiting" || step.state === "paused" || step.reason === "awaiting_agent_restart") return 3;
  return 2;
}
