// What the plane says about one run, beside its steps.

// local type: `Run` of the document, until it is there.
export type RunShown = {
  run_id: string;
  name?: string;
  status: string;
  state?: string;
  why?: string;
  executions: number;
  counts: Record<string, number>;
  started_at?: string;
  ended_at?: string;
  took_ms?: number;
  as_of?: string;
  took?: { queued_ms: number; running_ms: number; waiting_ms: number; paused_ms: number; partial?: boolean };
  lineage?: { restart_of_run?: string; restart_of_execution?: string; restarted_as?: string };
  open_detached?: number;
  paused_at?: string;
  usage?: { total_tokens?: number; cost?: string | number; currency?: string };
  root?: { execution_id: string; target: string; created_at: string; completed_at?: string; state: string };
};
