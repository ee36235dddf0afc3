// The answers about agents under short names.
import type { components } from "muster-openapi";

type Schemas = components["schemas"];
export type AgentLine = Schemas["AgentLine"];
export type Agent = Schemas["Agent"];
export type AgentInstance = Schemas["AgentInstance"];
export type AgentOffer = Schemas["AgentOffer"];

/* local type */
export type AgentHistory = {
  from: string;
  to: string;
  buckets: { from: string; to: string; state: string | null; state_unknown?: string; plane_down: boolean }[];
  changes: { at: string; instance: string; from: string | null; to: string | null; evidence: string }[];
  more: boolean;
};
/* local type */
export type CapSet = { agent: string; cap: number | null; was: number | null; source: string };
