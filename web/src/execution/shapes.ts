// The answers about executions under short names. Local types, to be replaced by the generated
// ones as soon as the document has them.

/* local type */
export type Wait = { cause: string; reference: string; until?: string };
/* local type */
export type ExecutionItem = {
  execution_id: string;
  run_id: string;
  status: string;
  state: string;
  status_reason?: string;
  why?: string;
  wait?: Wait;
  resumes_to?: string;
  agent: string;
  function: string;
  target: string;
  type: string;
  kind: string;
  lane: string;
  origin: string;
  parent_execution_id?: string;
  root_execution_id: string;
  depth: number;
  attempt: number;
  priority: number;
  session_id?: string;
  actor_id?: string;
  input_size: number;
  created_at: string;
  started_at?: string;
  completed_at?: string;
  duration_ms?: number;
  result_size?: number;
  restart_of?: string;
  restarted_as_execution_id?: string;
  replay_of?: string;
  source_run_id?: string;
  replay_mode?: string;
  replay_hit?: boolean;
  replayed_from_execution_id?: string;
  over_cap?: boolean;
  error?: string;
  error_message?: string;
  error_category?: string;
  usage?: unknown;
  late_outcome?: string;
  webhook_registered: boolean;
};
/* local type */
export type Execution = ExecutionItem & {
  as_of?: string;
  result_removed?: boolean;
  restarted_as?: { execution_id: string; run_id: string };
  approval_request_id?: string;
  approval_status?: string;
  approval_request_url?: string;
};
/* local type */
export type Attempt = {
  n: number;
  instance_id: string;
  sent_at: string;
  accepted_at?: string;
  ended_at?: string;
  outcome?: string;
  evidence?: string;
  evidence_hidden?: boolean;
};
/* local type */
export type FailedDial = { at: string; instance_id?: string; attempt?: number; text?: string };
/* local type */
export type AttemptList = { execution_id: string; as_of: string; attempts: Attempt[]; dials?: FailedDial[] };
/* local type */
export type LogEntry = {
  seq: number;
  ts: string;
  level: string;
  source: string;
  event_type: string;
  message: string;
  attributes: unknown;
};
/* local type */
export type LogPage = {
  entries: LogEntry[];
  total: number;
  dropped: number;
  gaps?: { after: number; lines: number }[];
  next_after: number;
  has_more: boolean;
};
/* local type */
export type Note = { message: string; tags: string[]; timestamp: string; agent_node_id: string | null };
/* local type */
export type NoteList = { total: number; notes: Note[] };
/* local type */
export type ExecutionEvent = {
  seq: number;
  at: string;
  type: string;
  instance_id?: string;
  attempt?: number;
  status?: string;
  status_reason?: string;
  error_category?: string;
  text?: string;
};
/* local type */
export type WhyFact = {
  seq?: number;
  at: string | null;
  by: string;
  text: string;
  value?: string;
  unknown?: string;
  inferred?: boolean;
};
/* local type */
export type WhyNext = { at: string | null; text: string };
/* local type */
export type WhyChange = { text: string; command: string; act?: string };
/* local type */
export type Why = {
  id: string;
  kind: string;
  as_of: string;
  state: string;
  status_reason?: string;
  name: string;
  run_id?: string;
  verdict: string;
  rule: { id: string; text: string; doc: string };
  facts: WhyFact[];
  next: WhyNext[];
  changes: WhyChange[];
  ruled_out: { text: string }[];
  execution?: ExecutionItem;
};
/* local type */
export type ActConsequence = {
  dry_run: boolean;
  text: string;
  total: number;
  affected: { execution_id: string; target: string; state: string; becomes: string }[];
  queued: number;
  at_agents: number;
  told: string[];
  waiting: number;
  kept: number;
  undo?: string;
};
/* local type */
export type RestartConsequence = {
  dry_run: boolean;
  text: string;
  source_run_id: string;
  restarted_execution_id: string;
  target: string;
  reuses: number;
  runs: number;
  functions: { name: string; reuses: number; runs: number }[];
  refused: string[];
};
/* local type */
export type RestartAccepted = { execution_id: string; run_id: string; status: string; restarted_execution_id: string };
/* local type */
export type Cancelled = { cancelled: string[]; told: number; status: string };
/* local type */
export type Moved = { status: string; state: string; changed: boolean; paused?: string[]; resumed?: string[] };
/* local type */
export type Decided = { message: string; decision?: string; new_status?: string; new_state?: string; repeated: boolean };
/* local type */
export type RunShown = {
  run_id: string;
  state: string;
  name?: string;
  executions?: number;
  counts?: Record<string, number>;
  cancelled_at?: string;
  paused_at?: string;
  root?: ExecutionItem;
};
/* local type */
export type HoldLifted = { queued: { agent: string; executions: number }[]; executions: number; webhooks: number; held: boolean };

const OPEN = new Set(["queued", "running", "waiting", "paused", "pending", "dispatching"]);

/** Whether an execution or a run in this state goes on. A word nobody knows counts as open: it may change. */
export const isOpen = (state: string): boolean =>
  OPEN.has(state) || !["succeeded", "failed", "cancelled", "timeout"].includes(state);
