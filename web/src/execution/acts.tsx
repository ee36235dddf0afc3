// What can be done about an execution or a run: cancel, pause, restart, fork, decide. Used by every
// page that shows one. Each act asks the plane for its consequence first and answers with a
// receipt; what may not be done is there too, with the reason.
import { count } from "@/look/format";
import type { Act } from "@/parts/act";
import { Id } from "@/parts/values";
import { Link, path } from "@/router";
import { CancelReceipt } from "./acts/cancelled";
import { Consequence, RestartForm } from "./acts/consequence";
import { DecideForm } from "./acts/decide-form";
import { type RestartWish, bodyOf } from "./acts/wish";
import { ask, touched, wouldDo } from "./ask";
import {
  type ActConsequence, type Cancelled, type Decided, type ExecutionItem, type Moved, type RestartAccepted,
  type RunShown, isOpen,
} from "./shapes";

/** An act with the word by which `why` names it. */
export type NamedAct = Act & { name: string };

/**
 * What somebody has begun to write for an act, by act and id: pages make acts anew whenever they
 * render, and a refusal must not lose what was typed. Gone with the tab, and when it was sent.
 */
const drafts = new Map<string, object>();

function draftOf<T extends object>(name: string, initial: T): T {
  const found = drafts.get(name) as T | undefined;
  if (found) return found;
  // A tab that lives long does not keep everything: the oldest goes.
  const oldest = drafts.size >= 50 ? drafts.keys().next().value : undefined;
  if (oldest !== undefined) drafts.delete(oldest);
  const made = { ...initial };
  drafts.set(name, made);
  return made;
}

/** More open executions than this, and cancelling a run wants its name typed. */
const WIDE = 20;

type Approvable = ExecutionItem & { approval_request_id?: string; approval_status?: string };

/** What can be done about one execution, in the order of the buttons. */
export function executionActs(execution: Approvable): NamedAct[] {
  const open = isOpen(execution.state);
  const acts: NamedAct[] = [];
  if (execution.state === "waiting" && execution.wait?.cause === "approval") {
    acts.push(
      decide(execution, "approve", "Approve", "approved", "a"),
      decide(execution, "request_changes", "Request changes", "request_changes"),
      decide(execution, "reject", "Refuse", "rejected", "d"),
    );
  }
  if (open) {
    acts.push(execution.state === "paused" ? resumeOne(execution) : pauseOne(execution), cancelOne(execution));
  }
  acts.push(...restarts(execution, open));
  return acts;
}

/** What can be done about a whole run. */
export function runActs(run: RunShown): NamedAct[] {
  const acts: NamedAct[] = [];
  const open = isOpen(run.state);
  if (open) {
    acts.push(run.paused_at !== undefined || run.state === "paused" ? resumeRun(run) : pauseRun(run), cancelRun(run));
  }
  if (run.root) acts.push(...restarts(run.root, open));
  return acts;
}

function cancelOne({ execution_id: id, run_id }: ExecutionItem): NamedAct {
  const template = "/api/v1/executions/{id}/cancel";
  return {
    name: "cancel", verb: "Cancel", kind: "ask", danger: true, hint: "Shift+X", command: `muster cancel ${id}`,
    consequence: async () => <Consequence would={await wouldDo<ActConsequence>(template, { path: { id } })} />,
    run: async (key) => {
      const done = await ask<Cancelled>(template, { path: { id }, key });
      touched(id, run_id);
      return <CancelReceipt done={done} run={run_id} />;
    },
  };
}

const openOf = (run: RunShown): number | null =>
  run.counts ? Object.entries(run.counts).reduce((sum, [state, many]) => (isOpen(state) ? sum + many : sum), 0) : null;

function cancelRun(run: RunShown): NamedAct {
  const template = "/api/v1/workflows/{run}/cancel-tree";
  const open = openOf(run);
  return {
    name: "cancel_tree", verb: "Cancel", danger: true, hint: "Shift+X", command: `muster cancel ${run.run_id} --tree`,
    kind: open === null || open > WIDE ? "wide" : "ask",
    confirm: run.name ?? run.root?.target ?? run.run_id,
    consequence: async () => <Consequence would={await wouldDo<ActConsequence>(template, { path: { run: run.run_id } })} />,
    run: async (key) => {
      const done = await ask<Cancelled>(template, { path: { run: run.run_id }, key });
      touched(run.run_id, ...done.cancelled.slice(0, 50));
      return <CancelReceipt done={done} run={run.run_id} />;
    },
  };
}

function movedSays(moved: Moved, verb: "paused" | "resumed"): string {
  if (!moved.changed) return `was ${moved.state} already`;
  const many = moved[verb]?.length;
  return many === undefined || many === 1 ? verb : `${verb} ${count(many)}`;
}

type Switch = NamedAct & { run(key: string): Promise<string>; undo(key: string): Promise<string> };

function pauseOne({ execution_id: id, run_id }: ExecutionItem): Switch {
  const move = async (word: "pause" | "resume", key: string): Promise<string> => {
    const done = await ask<Moved>(`/api/v1/executions/{id}/${word}`, { path: { id }, key });
    touched(id, run_id);
    return movedSays(done, word === "pause" ? "paused" : "resumed");
  };
  return {
    name: "pause", verb: "Pause", kind: "undo", hint: "Shift+P", scope: "operate", command: `muster pause ${id}`,
    run: (key) => move("pause", key), undo: (key) => move("resume", key),
  };
}

function resumeOne(execution: ExecutionItem): NamedAct {
  const pause = pauseOne(execution);
  return { ...pause, name: "resume", verb: "Resume", command: `muster resume ${execution.execution_id}`, run: pause.undo, undo: pause.run };
}

function pauseRun(run: RunShown): Switch {
  const move = async (word: "pause" | "resume", key: string): Promise<string> => {
    const done = await ask<Moved>(`/api/v1/workflows/{run}/${word}-tree`, { path: { run: run.run_id }, key });
    touched(run.run_id, ...(done.paused ?? done.resumed ?? []).slice(0, 50));
    return movedSays(done, word === "pause" ? "paused" : "resumed");
  };
  return {
    name: "pause_tree", verb: "Pause", kind: "undo", hint: "Shift+P", scope: "operate", command: `muster pause ${run.run_id} --tree`,
    run: (key) => move("pause", key), undo: (key) => move("resume", key),
  };
}

function resumeRun(run: RunShown): NamedAct {
  const pause = pauseRun(run);
  return { ...pause, name: "resume_tree", verb: "Resume", command: `muster resume ${run.run_id} --tree`, run: pause.undo, undo: pause.run };
}

/** Restart, and the same with the input open for editing. */
function restarts(execution: ExecutionItem, open: boolean): NamedAct[] {
  const { execution_id: id, run_id } = execution;
  const root = execution.root_execution_id === id;
  const make = (name: string, verb: string, first: Partial<RestartWish>, editing: boolean): NamedAct => {
    const draft = `${name} ${id}`;
    const wish = (): RestartWish =>
      draftOf(draft, { scope: "workflow", reuse: "succeeded-before", fork: false, input: null, reason: "", ...first });
    return {
      name, verb, kind: "ask", dialog: true, keep: "Not now",
      hint: editing ? undefined : "Shift+R",
      command: editing ? undefined : `muster restart ${id}`,
      disabled: execution.kind === "observed" ? "it runs inside its agent's process: restart what called it" : undefined,
      scope: "call",
      consequence: async () => <RestartForm id={id} root={root} inputSize={execution.input_size} wish={wish()} editing={editing} />,
      run: async (key) => {
        const done = await ask<RestartAccepted>("/api/v1/executions/{id}/restart", { path: { id }, body: bodyOf(wish()), key });
        drafts.delete(draft);
        touched(id, run_id);
        return (
          <>
            {editing ? "forked" : "restarted"} as <Link className="text-accent underline" to={path("runs", done.run_id)}><Id id={done.run_id} plain /></Link>
            {" · "}
            <Link className="text-accent underline" to={`/compare?a=${encodeURIComponent(run_id)}&b=${encodeURIComponent(done.run_id)}`}>compare</Link>
          </>
        );
      },
    };
  };
  return [
    make("restart", "Restart", { fork: open }, false),
    make("fork", "Fork", { fork: true, scope: root ? "workflow" : "execution" }, true),
  ];
}

function decide(execution: Approvable, name: string, verb: string, decision: string, hint?: string): NamedAct {
  const { execution_id: id, run_id } = execution;
  const template = "/api/v1/executions/{id}/approval-response";
  const request = execution.approval_request_id ?? execution.wait?.reference;
  const draft = `decide ${id}`;
  const wish = () => draftOf(draft, { feedback: "" });
  const body = () => ({
    decision,
    ...(request === undefined ? {} : { approval_request_id: request }),
    ...(wish().feedback.trim() ? { feedback: wish().feedback.trim() } : {}),
  });
  return {
    name, verb, kind: "ask", hint, scope: "operate", keep: "Not yet",
    primary: decision === "approved",
    danger: decision === "rejected",
    command: decision === "request_changes" ? undefined : `muster ${name} ${id}`,
    consequence: async () => {
      const would = await wouldDo<ActConsequence>(template, { path: { id }, body: body() });
      return <DecideForm would={would} wish={wish()} label={decision === "request_changes" ? "What should change" : "Comment, told to the agent"} />;
    },
    run: async (key) => {
      const done = await ask<Decided>(template, { path: { id }, body: body(), key });
      drafts.delete(draft);
      touched(id, run_id);
      const says = { approved: "approved", rejected: "refused", request_changes: "changes requested" }[done.decision ?? decision];
      return `${says ?? decision}${done.repeated ? " before" : ""}${done.new_state ? `, now ${done.new_state}` : ""}`;
    },
  };
}
