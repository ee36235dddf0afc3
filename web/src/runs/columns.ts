// The steps of a run as the plane sends them: one list for each thing known of them, by windows.
// Also makes that shape from the older answer, a page of executions. Knows nothing of drawing.

/** What a step's time went into. A word we do not know is drawn as unknown. */
export type SegmentKind =
  | "queued" | "dispatch" | "running" | "absorbed" | "waiting_person" | "waiting_child" | "paused";

/** Kind, from, until (`null`: it goes on); milliseconds since 1970. */
export type Segment = [kind: SegmentKind | (string & {}), from: number, to: number | null];

/** Bits of `flags`. */
export const FLAG = {
  detached: 1, observed: 2, overCap: 4, lateOutcome: 8, replayed: 16, inferredEnd: 32,
  stoppedKnowing: 64, paused: 128, resent: 256,
} as const;

// local type: `StepColumns` of the document, until it is there.
export type StepColumns = {
  as_of: string;
  position: string;
  run_id: string;
  state: string;
  total: number;
  names: string[];
  columns: {
    index: number[];
    id: string[];
    parent: number[];
    name: number[];
    agent: string[];
    state: string[];
    reason: (string | null)[];
    category: (string | null)[];
    created: number[];
    queued: (number | null)[];
    started: (number | null)[];
    ended: (number | null)[];
    attempts: number[];
    flags: number[];
    replay_of: (string | null)[];
    why: (string | null)[];
    segments: Segment[][];
  };
  next?: string;
  reset?: boolean;
};
