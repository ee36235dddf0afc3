// The steps of a run as the plane sends them: one list for each thing known of them, by windows.
import type { components } from "muster-openapi";

export type StepColumns = components["schemas"]["StepColumns"];

/** Kind, from, until (`null`: it goes on); milliseconds since 1970. A kind we do not know is drawn as unknown. */
export type Segment = components["schemas"]["Segment"];

/** One run, without its steps. */
export type RunShown = components["schemas"]["Run"];

/** Bits of `flags`. */
export const FLAG = {
  detached: 1, observed: 2, overCap: 4, lateOutcome: 8, replayed: 16, inferredEnd: 32,
  stoppedKnowing: 64, paused: 128, resent: 256, codeMayRun: 512,
} as const;
