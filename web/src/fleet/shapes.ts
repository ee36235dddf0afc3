// What the plane says of the fleet, by the names that these pages use.
import type { components } from "muster-openapi";

type Schemas = components["schemas"];

export type Fleet = Schemas["Fleet"];
export type LabelSum = Schemas["FleetLabel"];
export type FleetNode = Schemas["FleetNode"];
export type NodePage = Schemas["FleetNodes"];
export type NodeWhole = Schemas["FleetNodeWhole"];
export type History = Schemas["FleetHistory"];
/** A stretch of a past: of a node, or of an agent. */
export type StateBucket = { from: string; to: string; state: string | null; state_unknown?: string; plane_down: boolean };
export type Worker = Schemas["FleetWorker"];
export type WorkerPage = Schemas["FleetWorkers"];
export type Drift = Schemas["NodeDrift"];
export type NodeConsequence = Schemas["NodeConsequence"];
export type ReleaseConsequence = Schemas["ReleaseConsequence"];
export type PassedOver = Schemas["PassedOver"];
export type Placements = Schemas["Placements"];
export type PlacementPlan = Schemas["PlacementPlan"];
