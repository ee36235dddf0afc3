// The steps of one run as trees: who called whom. A forest never changes; `patched` makes the next
// one and keeps every step and list that stayed the same, so that what is drawn of it can too.
import { FLAG, type Segment, type StepColumns } from "./columns";

export type Step = {
  /** Its place among all steps of the run, oldest first; stays for ever. */
  index: number;
  id: string;
  /** Index of the step that called it; -1 for a root. */
  parent: number;
  /** `agent.function`, as a number into the forest's names. */
  name: number;
  agent: string;
  state: string;
  reason: string | null;
  category: string | null;
  created: number;
  queued: number | null;
  started: number | null;
  ended: number | null;
  attempts: number;
  /** As the plane told them, but `detached` only where it outlives its caller: who is waited for to the end is none. */
  flags: number;
  told: number;
  replayOf: string | null;
  why: string | null;
  /** Of one that was ended while its agent had it: what the agent did about it; `null`: nothing to tell. */
  receipt: string | null;
  /** When (plane time) the plane said all this. */
  saidAt: number;
  segments: Segment[];
};

export type Forest = {
  readonly steps: readonly Step[];
  readonly names: readonly string[];
  /** Children of each step, in the order in which they were called. */
  readonly children: readonly (readonly number[])[];
  readonly roots: readonly number[];
  /** Changes when a step came or changed its parent: what hangs on shape alone can be kept. */
  readonly shape: number;
};

export const EMPTY: Forest = { steps: [], names: [], children: [], roots: [], shape: 0 };
const NONE: readonly number[] = [];

export const has = (step: Step, flag: keyof typeof FLAG) => (step.flags & FLAG[flag]) !== 0;

/** `function` of `agent.function`. */
export const nameOf = (forest: Forest, step: Step) => forest.names[step.name] ?? "?";

/** Where it went wrong, where it is stuck, where it is: in this order rows are kept in sight. */
export type Trouble = "failed" | "waiting" | "running" | "none";

export function troubleOf(step: Step): Trouble {
  switch (step.state) {
    case "failed":
    case "timeout":
      return "failed";
    case "waiting":
    case "paused":
      return "waiting";
    case "queued":
    case "dispatching":
    case "running":
      return step.reason === "awaiting_agent_restart" ? "waiting" : "running";
    default:
      return "none";
  }
}

export const isOpen = (step: Step) => step.ended === null && !["succeeded", "failed", "cancelled", "timeout"].includes(step.state);

/** How long it took, or takes so far; from when it was accepted. */
export const tookOf = (step: Step, now: number) =>
  Math.max(0, (step.ended ?? (isOpen(step) ? now : lastKnown(step))) - step.created);

/** The latest moment that anything is known of. */
export function lastKnown(step: Step): number {
  let last = step.started ?? step.created;
  for (const [, from, to] of step.segments) last = Math.max(last, to ?? from);
  return last;
}

const same = (a: Step, b: Step) =>
  a.state === b.state && a.reason === b.reason && a.ended === b.ended && a.started === b.started &&
  a.attempts === b.attempts && a.told === b.told && a.category === b.category && a.why === b.why &&
  a.parent === b.parent && a.queued === b.queued && a.replayOf === b.replayOf && a.name === b.name && a.receipt === b.receipt && sameSegments(a.segments, b.segments);

function sameSegments(a: Segment[], b: Segment[]): boolean {
  return a.length === b.length && a.every(([kind, from, to], index) => {
    const other = b[index];
    return other !== undefined && other[0] === kind && other[1] === from && other[2] === to;
  });
}

/**
 * The forest with an answer put into it: new steps at their places, changed ones in place. Steps
 * behind a hole (a window that is not there yet) are left out; `missing` tells that there were any.
 */
export function patched(before: Forest, answer: StepColumns): { forest: Forest; changed: number[]; missing: boolean } {
  const { columns } = answer;
  const names = [...before.names];
  const placed = new Map(names.map((name, index) => [name, index]));
  const nameAt = (index: number) => {
    const name = answer.names[index] ?? "?";
    let at = placed.get(name);
    if (at === undefined) placed.set(name, (at = names.push(name) - 1));
    return at;
  };
  const steps = [...before.steps];
  const changed: number[] = [];
  const saidAt = Date.parse(answer.as_of);
  let missing = false;
  let reshaped = false;
  const order = columns.index.map((index, at) => [index, at] as const).sort((a, b) => a[0] - b[0]);
  for (const [index, at] of order) {
    if (index > steps.length) {
      missing = true;
      continue;
    }
    const next: Step = {
      index,
      id: columns.id[at] ?? "",
      parent: columns.parent[at] ?? -1,
      name: nameAt(columns.name[at] ?? -1),
      agent: columns.agent[at] ?? "",
      state: columns.state[at] ?? "unknown",
      reason: columns.reason[at] ?? null,
      category: columns.category[at] ?? null,
      created: columns.created[at] ?? 0,
      queued: columns.queued[at] ?? null,
      started: columns.started[at] ?? null,
      ended: columns.ended[at] ?? null,
      attempts: columns.attempts[at] ?? 0,
      flags: columns.flags[at] ?? 0,
      told: columns.flags[at] ?? 0,
      replayOf: columns.replay_of[at] ?? null,
      why: columns.why[at] ?? null,
      // A plane that is older than this page tells of none.
      receipt: columns.receipt?.[at] ?? null,
      saidAt,
      segments: columns.segments[at] ?? [],
    };
    const known = steps[index];
    if (known && known.id === next.id && same(known, next)) continue;
    if (!known || known.parent !== next.parent || known.name !== next.name) reshaped = true;
    steps[index] = next;
    changed.push(index);
  }
  if (changed.length === 0 && names.length === before.names.length) return { forest: before, changed, missing };
  const shape = reshaped ? shaped(steps) : { children: before.children, roots: before.roots };
  for (const index of changed) for (const each of [index, ...(shape.children[index] ?? NONE)]) loosen(steps, each);
  return { forest: { steps, names, ...shape, shape: before.shape + (reshaped ? 1 : 0) }, changed, missing };
}

/** Takes the mark `detached` off a step that did not outlive its caller, or puts it back. */
function loosen(steps: Step[], index: number): void {
  const step = steps[index];
  if (!step || (step.told & FLAG.detached) === 0) return;
  const caller = steps[step.parent];
  const outlives = !caller || (caller.ended !== null && (step.ended === null || step.ended > caller.ended));
  const flags = outlives ? step.told : step.told & ~FLAG.detached;
  if (flags !== step.flags) steps[index] = { ...step, flags };
}

/** Children of each. A step whose caller is not there, or that would be its own caller, is a root. */
function shaped(steps: readonly Step[]): { children: (readonly number[])[]; roots: number[] } {
  const children: (readonly number[])[] = new Array<readonly number[]>(steps.length).fill(NONE);
  const roots: number[] = [];
  for (const step of steps) {
    if (step.parent < 0 || step.parent >= steps.length || circular(steps, step)) {
      roots.push(step.index);
      continue;
    }
    const siblings = children[step.parent];
    if (siblings === NONE || siblings === undefined) children[step.parent] = [step.index];
    else (siblings as number[]).push(step.index);
  }
  return { children, roots };
}

/** Callers are older than what they call; only a step that claims otherwise has to be followed. */
function circular(steps: readonly Step[], step: Step): boolean {
  if (step.parent < step.index) return false;
  let at = step.parent;
  for (let hops = 0; at >= 0 && hops <= steps.length; hops++) {
    if (at === step.index) return true;
    const above = steps[at];
    if (!above) return false;
    at = above.parent;
  }
  return at >= 0;
}

export const childrenOf = (forest: Forest, index: number) => forest.children[index] ?? NONE;

/** The step's callers, nearest first. */
export function* callersOf(forest: Forest, index: number): Generator<number> {
  const seen = new Set<number>();
  let at = forest.steps[index]?.parent ?? -1;
  while (at >= 0 && !seen.has(at)) {
    const step = forest.steps[at];
    if (!step) return;
    seen.add(at);
    yield at;
    at = step.parent;
  }
}

/** How many steps there are of each state. */
export function countsOf(forest: Forest, members?: readonly number[]): Map<string, number> {
  const counts = new Map<string, number>();
  const count = (state: string) => counts.set(state, (counts.get(state) ?? 0) + 1);
  if (members) for (const index of members) count(forest.steps[index]?.state ?? "unknown");
  else for (const step of forest.steps) count(step.state);
  return counts;
}
