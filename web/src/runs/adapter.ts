// Makes columns from pages of executions, for a plane that does not send columns yet. Goes away
// with the last such plane: what only columns tell (segments, flags, reasons) is guessed at nowhere.
import type { Segment, StepColumns } from "./columns";

type OldStep = {
  execution_id: string; parent_execution_id?: string; agent: string; target: string; state: string; status_reason?: string;
  error_category?: string; created_at: string; started_at?: string; completed_at?: string; attempt?: number;
  kind?: string; replayed_from?: string;
};

export function columnsFromPages(run: string, state: string, steps: OldStep[]): StepColumns {
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
    columns.flags.push((step.kind === "observed" ? 2 : 0) | (step.replayed_from ? 16 : 0));
    columns.replay_of.push(step.replayed_from ?? null);
    columns.why.push(null);
    columns.segments.push(segments);
  }
  return { as_of: new Date().toISOString(), position: "", run_id: run, state, total: steps.length, names, columns };
}
