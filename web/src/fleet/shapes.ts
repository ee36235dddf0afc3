// What the plane says of the fleet. Each of these is a local type until the document has it.

export type LastCount = { value: number; at: string };

export type Fleet = {
  as_of: string;
  nodes: Record<string, number>;
  workers: Record<string, number>;
  queued: number;
  drifting: number;
  doubt: { since: string; evidence: string } | null;
  capacity: {
    reachable: number | null;
    reachable_reason?: string;
    reachable_last?: LastCount;
    used: number | null;
    used_reason?: string;
    used_last?: LastCount;
    unknown: number | null;
    unknown_reason?: string;
    unknown_since?: string;
    reachable_share: number | null;
  };
  alarms: { kind: string; text: string; since?: string }[];
  labels?: LabelSum[];
};

export type LabelSum = {
  label: string;
  nodes: number;
  states: Record<string, number>;
  capacity: number | null;
  used: number | null;
  unknown: number | null;
};

export type FleetNode = {
  id: string;
  name: string;
  kind: string;
  state: string;
  state_at: string;
  evidence: string;
  flapping: boolean;
  wish: string;
  labels: string[];
  max_workers: number | null;
  version: string;
  host: string | null;
  worker_names: string[];
  drift: boolean;
  heard_at: string | null;
  next: { at: string; what: string } | null;
  load: number | null;
  load_reason?: string;
  load_last?: LastCount;
  workers: number | null;
  workers_reason?: string;
  workers_last?: LastCount;
  free: number | null;
  free_reason?: string;
  free_last?: LastCount;
  pin?: { by: string; at: string; reason: string | null; state: string };
};

export type NodePage = {
  as_of: string;
  count: number;
  total?: number;
  states?: Record<string, number>;
  nodes: FleetNode[];
  next_cursor?: string;
};

export type Told = { at: string; why: string };

export type NodeWhole = FleetNode & {
  as_of?: string;
  capabilities: string[];
  epoch: string | null;
  principal: string;
  enrolled_at: string;
  connected_at: string | null;
  disconnected: Told | null;
  beat: { at: string; workers: number } | null;
  inventory: { at: string; workers: number } | null;
  goodbye: Told | null;
  lost: Told | null;
  wished: { by: string; at: string; reason: string | null } | null;
  link: number | null;
  beat_interval_ms: number;
  beats_missed: number;
  late_frames: number;
  facts: { what: string; at: string | null; by: string; text: string }[];
};

export type HistoryLine = {
  seq: number;
  at: string;
  node: string | null;
  worker: string | null;
  kind: string;
  from: string | null;
  to: string | null;
  evidence: string;
};

export type StateBucket = { from: string; to: string; state: string | null; plane_down: boolean };
export type History = {
  count: number;
  history: HistoryLine[];
  next_before: number | null;
  buckets?: StateBucket[];
};

export type WorkerExit = {
  code: number | null;
  signal: number | null;
  at: string | null;
  output: string;
  reason: string | null;
};

export type Worker = {
  id: string;
  name: string;
  node: string | null;
  node_name: string | null;
  state: string;
  state_at: string;
  evidence: string;
  unknown_because?: string;
  command: string;
  io: string | null;
  restart: { mode: string; max: number | null };
  labels: string[];
  target: { node: string | null; labels: string[] };
  principal: string | null;
  principal_reason?: string;
  created_at: string;
  pid: number | null;
  started_at: string | null;
  restarts: number;
  next_start_at: string | null;
  confirmed_at: string | null;
  adopted: boolean;
  agent: string | null;
  release: { by: string; at: string; reason: string | null } | null;
  exit: WorkerExit | null;
  ended_at: string | null;
  ended_how: string | null;
  place_by?: string | null;
  waits_for?: string | null;
  error_category?: string;
};

export type WorkerPage = { as_of: string; count: number; workers: Worker[]; next_cursor?: string };

export type Drift = {
  node: string;
  name: string;
  since: string;
  believed: number;
  claimed: number;
  missing: string[];
  surplus: string[];
  next: string;
};

export type PassedOver = { node: string; name: string; why: string; evidence: string };

export type Placements = {
  as_of: string;
  count: number;
  total: number;
  placements: {
    worker: Worker;
    since: string;
    expires_at: string | null;
    text: string;
    passed_over: PassedOver[];
    passed_over_counts: Record<string, number>;
  }[];
};

export type NodeConsequence = {
  dry_run: boolean;
  node: string;
  name: string;
  allowed: boolean;
  text: string;
  workers: { id: string; name: string; state: string; agent?: string }[];
  workers_total: number;
  workers_unknown: number;
  then?: string;
};

export type ReleaseConsequence = {
  dry_run: boolean;
  worker: string;
  name: string;
  allowed: boolean;
  text: string;
  agent?: string;
  in_flight?: number;
  node_heard_at?: string;
};

export type PlacementPlan = {
  dry_run: boolean;
  would: string;
  text: string;
  node?: string;
  node_name?: string;
  error_category?: string;
  hint?: string;
  candidates: { node: string; name: string; free: number | null; load: number | null }[];
  passed_over: PassedOver[];
  passed_over_counts: Record<string, number>;
};
