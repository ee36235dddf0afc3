// What a line of the lists shows of a run or an execution, in one shape. Pure.
import type { components } from "muster-openapi";
import { saysLeft } from "@/look/left";

export type Counts = Record<string, number>;
export type ExecutionLine = components["schemas"]["ExecutionItem"];
export type RunLine = components["schemas"]["RunItem"];

/** One line of either list. */
export type Line = {
  id: string; run: string; to: string; name: string; state: string; why: string | undefined; counts: Counts | undefined; steps: number | undefined;
  at: string; ended: string | undefined; took: number | undefined; restartOf: string | undefined;
  /** When `why` was true, where it says how much time is left. */
  saidAt: number | undefined;
};

const encoded = encodeURIComponent;

/** `cancelled: cancelled` says nothing twice: then what its root says, or the word once. */
export function whyOfRun({ why, root }: { why?: string; root?: { error?: string } | null }): string | undefined {
  const [category, rest] = (why ?? "").split(": ");
  return category !== "" && category === rest ? (root?.error ?? category) : why;
}

export function lineOfRun(run: RunLine, asOf?: string): Line {
  const why = whyOfRun(run);
  return {
    id: run.run_id, run: run.run_id, to: `/runs/${encoded(run.run_id)}`, name: run.name, state: run.state, why, saidAt: saidAt(why, asOf),
    counts: run.counts as Counts, steps: run.executions, at: run.started_at, ended: run.ended_at, took: run.took_ms, restartOf: run.source_run_id,
  };
}

const saidAt = (why: string | undefined, asOf: string | undefined) => (asOf !== undefined && saysLeft(why) ? Date.parse(asOf) : undefined);

export function lineOfExecution(execution: ExecutionLine, asOf?: string): Line {
  return {
    id: execution.execution_id, run: execution.run_id, to: `/runs/${encoded(execution.run_id)}?step=${encoded(execution.execution_id)}`, name: execution.target,
    state: execution.state, why: execution.why ?? (execution.error_category ? [execution.error_category, execution.error].filter(Boolean).join(": ") : undefined), counts: undefined, steps: undefined,
    at: execution.created_at, ended: execution.completed_at, took: execution.duration_ms, restartOf: undefined, saidAt: saidAt(execution.why, asOf),
  };
}

/** The states of executions, in the order in which a bar and a filter show them. */
export const STATES = ["queued", "running", "waiting", "paused", "succeeded", "failed", "cancelled", "timeout"] as const;
export const OPEN = new Set(["queued", "running", "waiting", "paused"]);
export const isOpen = (state: string) => OPEN.has(state);

/** Parts of a split bar: what ended well first, what did not last; unknown words at the end. */
const BAR = ["succeeded", "running", "waiting", "paused", "queued", "cancelled", "timeout", "failed"];
export function partsOf(counts: Counts): { state: string; count: number }[] {
  const known = BAR.filter((state) => (counts[state] ?? 0) > 0).map((state) => ({ state, count: counts[state] ?? 0 }));
  const others = Object.entries(counts).filter(([state, count]) => !BAR.includes(state) && count > 0).map(([state, count]) => ({ state, count }));
  return [...known, ...others];
}

export const sumOf = (counts: Counts, states?: ReadonlySet<string>) =>
  Object.entries(counts).reduce((sum, [state, count]) => (!states || states.has(state) ? sum + count : sum), 0);
