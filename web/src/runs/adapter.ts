// Makes columns from pages of executions, for a plane that does not send columns yet. Goes away
// with the last such plane: what only columns tell (segments, flags, reasons) is guessed at nowhere.
import { get } from "@/api/client";
import type { components } from "muster-openapi";
import type { Segment, StepColumns } from "./columns";

type StepPage = components["schemas"]["StepPage"];

export async function oldPages(run: string, signal: AbortSignal): Promise<StepColumns> {
  const steps: StepPage["steps"] = [];
  let state: StepPage["status"] = "running";
  let cursor: string | undefined;
  do {
    const page = (await get("/api/v1/runs/{run}/steps", { path: { run }, query: { limit: 1000, cursor } as never, signal })) as StepPage;
    steps.push(...page.steps);
    state = page.status;
    cursor = page.next_cursor;
  } while (cursor);
  const place = new Map(steps.map((step, index) => [step.execution_id, index]));
  const names: string[] = [];
  const nameOf = new Map<string, number>();
  const ms = (at?: string) => (at === undefined ? null : Date.parse(at));
  const columns: StepColumns["columns"] = {
    index: [], id: [], parent: [], name: [], agent: [], state: [], reason: [], category: [], created: [], queued: [],
    started: [], ended: [], attempts: [], flags: [], replay_of: [], why: [], segments: [],
  };
  for (const [index, step] of steps.entries()) {
    if (!nameOf.has(step.target)) nameOf.set(step.target, names.push(step.target) - 1);
    const created = ms(step.created_at) ?? 0;
    const started = ms(step.started_at);
    const ended = ms(step.completed_at);
    const segments: Segment[] = [];
    if (started !== null && started > created) segments.push(["queued", created, started]);
    if (started !== null && (ended !== null || step.state === "running")) segments.push(["running", started, ended]);
    columns.index.push(index);
    columns.id.push(step.execution_id);
    columns.parent.push(step.parent_execution_id ? (place.get(step.parent_execution_id) ?? -1) : -1);
    columns.name.push(nameOf.get(step.target) ?? 0);
    columns.agent.push(step.agent);
    columns.state.push(step.state);
    columns.reason.push(step.status_reason ?? null);
    columns.category.push(step.error_category ?? null);
    columns.created.push(created);
    columns.queued.push(null);
    columns.started.push(started);
    columns.ended.push(ended);
    columns.attempts.push(step.attempt ?? 0);
    columns.flags.push((step.kind === "observed" ? 2 : 0) | (step.replay_hit ? 16 : 0));
    columns.replay_of.push(step.replayed_from_execution_id ?? null);
    columns.why.push(null);
    columns.segments.push(segments);
  }
  return { as_of: new Date().toISOString(), position: "", run_id: run, state, total: steps.length, names, columns };
}
