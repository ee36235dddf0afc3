// local type: shapes of answers that openapi.json does not have yet. Each goes when it is there.
type At = string;
export type Need = { kind: string; id: string; state: string; text: string; since: At | null; until?: At; path: string };
export type HeldGroup = { cause: string; state: string; text: string; count: number; oldest_at: At | null; query: string | null };
export type StateCounts = { total: number; states: Record<string, number> };
export type Overview = {
  as_of: At; position: string; needs: Need[]; needs_total: number;
  held: { total: number; causes: HeldGroup[] };
  flow: { from: At; bucket_ms: number; started: (number | null)[]; ended: (number | null)[]; started_per_min: number | null; ended_per_min: number | null; open: number; oldest_wait_ms: number | null };
  failed: { from: At; total: number; before: number | null; categories: { category: string; count: number; before: number | null; query: string }[] };
  agents: StateCounts; nodes: StateCounts; workers: Record<string, number>;
  slots: { free: number | null; free_unknown?: string; reachable: number | null; reachable_unknown?: string; total: number | null; total_unknown?: string; unknown: number; unknown_since?: At };
  running: number; waiting: number; queued: number; paused: number;
};
export type FoundItem = { id: string; title: string; state: string | null; text: string; at: At | null; path: string };
export type SearchAnswer = {
  q: string; understood: { key: string; value: string }[];
  groups: { kind: string; items: FoundItem[]; more: boolean }[]; note: string;
};
export type QueueLine = {
  agent: string; cap: number | null; running: number; over_cap: number; queued: number; waiting_callers: number; absorbed: number; held: boolean;
  oldest_queued_at?: At; starts_per_minute: number | null; starts_in_ms: number | null;
  held_by?: { cause: string; text: string; until?: At } | null; pending_tags?: string[];
};
export type QueueEntry = { position: number; execution_id: string; run_id: string; function: string; class: number; turn: number; created_at: At; starts_in_ms: number | null };
export type Queues = { as_of: At; position: string; queues: QueueLine[] };
export type Queue = QueueLine & { as_of: At; entries: QueueEntry[]; more: number };
