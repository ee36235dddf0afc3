// The head of the panel: which execution, where it is, how long, what is special about it, and what
// can be done.
import type { ReactNode } from "react";
import { plain } from "@/look/plain";
import { ActButton } from "@/parts/act";
import { ActGroup } from "@/parts/act-group";
import { Plain } from "@/parts/plain";
import { StateMark } from "@/parts/state-mark";
import { Age, Id, Room, Took } from "@/parts/values";
import { Link, path } from "@/router";
import type { NamedAct } from "./acts";
import { usageText } from "./output";
import { type ExecutionItem, isOpen } from "./shapes";

const STOPPED_KNOWING = new Set(["outcome_unknown", "agent_timeout", "agent_restart_orphaned"]);

/** Whether the end is where we stopped knowing, not what happened. */
export const doubtful = (execution: Pick<ExecutionItem, "state" | "error_category">): boolean =>
  execution.state === "failed" && STOPPED_KNOWING.has(execution.error_category ?? "");

export function PanelHead({ execution, acts, close, alone }: { execution: ExecutionItem; acts: NamedAct[]; close?(): void; alone?: boolean }) {
  const open = isOpen(execution.state);
  return (
    <header className="flex flex-col gap-2 border-b border-border px-3 py-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <StateMark state={execution.state} doubtful={doubtful(execution)} evidence={execution.status_reason} />
        <h2 className="min-w-0 truncate font-mono text-sm" title={plain(execution.target)}>
          <Link to={path("agents", execution.agent)}><Plain text={execution.target} /></Link>
        </h2>
        <Id id={execution.execution_id} />
        <span className="flex-1" />
        {close && <button type="button" className="min-h-[24px] min-w-[24px] text-text-2 hover:bg-hover" aria-label="Close" title="Close · Esc" onClick={close}>✕</button>}
      </div>
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-text-2">
        {Facts({ execution, open, alone }).map((fact, index) => <span key={index}>{fact}</span>)}
      </p>
      {acts.length > 0 && (
        <div className="flex flex-wrap items-center gap-2" role="group" aria-label="Acts">
          <ActGroup>{acts.map((act) => <ActButton key={act.name} act={act} />)}</ActGroup>
        </div>
      )}
    </header>
  );
}

/** What there is to say beside its state; only what is special. */
function Facts({ execution, open, alone }: { execution: ExecutionItem; open: boolean; alone?: boolean }): ReactNode[] {
  const facts: ReactNode[] = [];
  const to = (id: string) => <Link className="text-accent underline" to={path("executions", id)}><Id id={id} plain /></Link>;
  facts.push(execution.kind === "observed" ? "reported by its agent, not dispatched" : execution.attempt === 0 ? "not sent yet" : `attempt ${execution.attempt}`);
  if (open) facts.push(<>accepted <Room ch={9} start><Age at={execution.created_at} /></Room></>);
  else facts.push(<>took <Took ms={execution.duration_ms} from={execution.created_at} to={execution.completed_at} /></>, <>ended <Room ch={9} start><Age at={execution.completed_at} /></Room></>);
  if (alone) facts.push(<>run <Link className="text-accent underline" to={path("runs", execution.run_id)}><Id id={execution.run_id} plain /></Link></>);
  if (execution.lane !== "async") facts.push(<>lane <Plain text={execution.lane} /></>);
  if (execution.priority !== 5) facts.push(`priority ${execution.priority}`);
  if (execution.session_id) facts.push(<>session <Plain text={execution.session_id} /></>);
  if (execution.actor_id) facts.push(<>for <Plain text={execution.actor_id} /></>);
  if (execution.over_cap) facts.push("over cap: its caller holds a slot");
  if (execution.replayed_from_execution_id) facts.push(<>reused from {to(execution.replayed_from_execution_id)}</>);
  else if (execution.restart_of) facts.push(<>restart of {to(execution.restart_of)}</>);
  if (execution.restarted_as_execution_id) facts.push(<>restarted as {to(execution.restarted_as_execution_id)}</>);
  if (execution.late_outcome) facts.push(<span className="text-wait">late outcome kept: <Plain text={execution.late_outcome} /></span>);
  const usage = usageText(execution.usage);
  if (usage) facts.push(usage);
  return facts;
}
