// Forests for tests: from a short notation, and random ones from a seed.
import type { Segment, StepColumns } from "./columns";
import { EMPTY, type Forest, patched } from "./forest";

export type Made = {
  id?: string; parent?: number; name?: string; state?: string; reason?: string | null; created?: number; started?: number | null;
  ended?: number | null; flags?: number; attempts?: number; replayOf?: string | null; segments?: Segment[]; category?: string | null;
  why?: string | null; receipt?: string | null;
};

/** An answer with these steps, from place `from` on. */
export function answerOf(made: Made[], from = 0): StepColumns {
  const names = [...new Set(made.map((step) => step.name ?? "a.f"))];
  const columns: StepColumns["columns"] = {
    index: [], id: [], parent: [], name: [], agent: [], state: [], reason: [], category: [], created: [], queued: [],
    started: [], ended: [], attempts: [], flags: [], replay_of: [], why: [], segments: [], receipt: [],
  };
  for (const [at, step] of made.entries()) {
    const created = step.created ?? 0;
    const ended = step.ended === undefined ? created + 10 : step.ended;
    columns.index.push(from + at);
    columns.id.push(step.id ?? `exec_${from + at}`);
    columns.parent.push(step.parent ?? -1);
    columns.name.push(names.indexOf(step.name ?? "a.f"));
    columns.agent.push("a");
    columns.state.push((step.state ?? (ended === null ? "running" : "succeeded")) as StepColumns["state"]);
    columns.reason.push(step.reason ?? null);
    columns.category.push((step.category ?? null) as StepColumns["columns"]["category"][number]);
    columns.created.push(created);
    columns.queued.push(null);
    columns.started.push(step.started === undefined ? created : step.started);
    columns.ended.push(ended);
    columns.attempts.push(step.attempts ?? 1);
    columns.flags.push(step.flags ?? 0);
    columns.replay_of.push(step.replayOf ?? null);
    columns.why.push(step.why ?? null);
    columns.receipt.push((step.receipt ?? null) as StepColumns["columns"]["receipt"][number]);
    columns.segments.push(step.segments ?? [["running", created, ended]]);
  }
  return { as_of: "2026-01-01T00:00:00.000Z", position: "1", run_id: "run_1", state: "running", total: from + made.length, names, columns };
}

export const forestOf = (made: Made[]): Forest => patched(EMPTY, answerOf(made)).forest;

/** Numbers that look random and are the same for the same seed. */
export function random(seed: number): () => number {
  let state = seed * 2654435761 + 1;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

const STATES = ["succeeded", "succeeded", "succeeded", "succeeded", "failed", "running", "waiting", "queued", "cancelled", "timeout"];

/** A random tree of `count` steps; children lie within their callers' time. */
export function randomSteps(seed: number, count: number): Made[] {
  const next = random(seed);
  const made: Made[] = [];
  for (let index = 0; index < count; index++) {
    const parent = index === 0 ? -1 : Math.floor(next() ** 2 * index);
    const above = made[parent];
    const created = above ? (above.created ?? 0) + Math.floor(next() * 50) : 0;
    const state = STATES[Math.floor(next() * STATES.length)] ?? "succeeded";
    const open = ["running", "waiting", "queued"].includes(state);
    made.push({ parent, created, name: `a.f${Math.floor(next() * 4)}`, state, ended: open ? null : created + 1 + Math.floor(next() * 400) });
  }
  return made;
}
