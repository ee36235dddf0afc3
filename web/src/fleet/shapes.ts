// What the plane says of the fleet, by the names that these pages use.
import type { components } from "muster-openapi";

type Schemas = components["schemas"];

export type Fleet = Schemas["Fleet"] & {
  // local type: sums per label, until the document has them.
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
export type FleetNode = Schemas["FleetNode"];
export type NodePage = Schemas["FleetNodes"];
export type NodeWhole = Schemas["FleetNodeWhole"];
export type HistoryLine = Schemas["FleetHistoryLine"];
export type History = Schemas["FleetHistory"] & {
  // local type: the strip, until the document has it.
  buckets?: StateBucket[];
};
export type StateBucket = { from: string; to: string; state: string | null; plane_down: boolean };
export type Worker = Schemas["FleetWorker"];
export type WorkerPage = Schemas["FleetWorkers"];
export type Drift = Schemas["NodeDrift"];
export type NodeConsequence = Schemas["NodeConsequence"];
export type ReleaseConsequence = Schemas["ReleaseConsequence"];

// local type: placements, until the document has them.
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
