// The answers about agents under short names.
import type { components } from "muster-openapi";

type Schemas = components["schemas"];
export type AgentLine = Schemas["AgentLine"];
export type Agent = Schemas["Agent"];
export type AgentInstance = Schemas["AgentInstance"];
export type AgentOffer = Schemas["AgentOffer"];

export type AgentHistory = Schemas["AgentHistory"];
export type CapShown = Schemas["CapShown"];
export type AgentRetired = Schemas["AgentRetired"];
