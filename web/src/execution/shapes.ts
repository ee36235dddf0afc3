// The answers about executions under short names, and what is said about them everywhere.
import type { components } from "muster-openapi";

type Schemas = components["schemas"];
export type ExecutionItem = Schemas["ExecutionItem"];
export type Attempt = Schemas["Attempt"];
export type FailedDial = Schemas["FailedDial"];
export type AttemptList = Schemas["AttemptList"];
export type LogEntry = Schemas["LogEntry"];
export type LogPage = Schemas["LogPage"];
export type NoteList = Schemas["NoteList"];
export type ExecutionEvents = Schemas["ExecutionEvents"];
export type ActConsequence = Schemas["ActConsequence"];
export type RestartConsequence = Schemas["RestartConsequence"];
export type RestartAccepted = Schemas["RestartAccepted"];
export type Cancelled = Schemas["Cancelled"];
export type Moved = Schemas["Moved"];
export type Decided = Schemas["Decided"];
/** What of a run its acts need to know. */
export type RunShown = Pick<Schemas["RunItem"], "run_id"> & Partial<Pick<Schemas["Run"], "name" | "counts" | "root" | "paused_at">> & { state: string };

export type WhyFact = Schemas["WhyFact"];
export type WhyNext = Schemas["WhyNext"];
export type WhyChange = Schemas["WhyChange"];
export type Why = Schemas["Why"];

const ENDED = new Set(["succeeded", "failed", "cancelled", "timeout"]);

/** Whether an execution or a run in this state goes on. A word nobody knows counts as open: it may change. */
export const isOpen = (state: string): boolean => !ENDED.has(state);
