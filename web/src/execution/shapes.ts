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

/* local type */
export type WhyFact = { seq?: number; at: string | null; by: string; text: string; value?: string; unknown?: string; inferred?: boolean };
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

const ENDED = new Set(["succeeded", "failed", "cancelled", "timeout"]);

/** Whether an execution or a run in this state goes on. A word nobody knows counts as open: it may change. */
export const isOpen = (state: string): boolean => !ENDED.has(state);
