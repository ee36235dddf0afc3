// How each state is drawn: word, shape, colour, pattern. The plane computes states; this only
// draws them. A word that is not here is shown as that word, neutral, with a question mark.

export type Colour = "ok" | "run" | "wait" | "fail" | "time" | "neutral" | "text";
export type Shape =
  | "ring" | "triangle" | "arrow" | "half" | "bars" | "check" | "cross" | "slashed" | "clock"
  | "disc" | "half-disc" | "hatched" | "dotted" | "waves" | "warning" | "reused" | "observed";

export type Look = { word: string; shape: Shape; colour: Colour; /** Known to this page. */ known: boolean };

const look = (shape: Shape, colour: Colour) => ({ shape, colour });

const LOOKS: Record<string, { shape: Shape; colour: Colour }> = {
  // Executions and runs.
  queued: look("ring", "neutral"), pending: look("ring", "neutral"),
  dispatching: look("ring", "neutral"), running: look("triangle", "run"),
  absorbed: look("arrow", "wait"), restarting: look("arrow", "wait"),
  waiting: look("half", "wait"), paused: look("bars", "neutral"), hold: look("bars", "neutral"),
  cordoned: look("bars", "neutral"), held: look("bars", "neutral"),
  succeeded: look("check", "ok"), failed: look("cross", "fail"),
  cancelled: look("slashed", "neutral"), timeout: look("clock", "time"), timed_out: look("clock", "time"),
  // Agents, instances, nodes, workers, links.
  online: look("disc", "text"), active: look("disc", "text"), ready: look("disc", "text"),
  suspect: look("half-disc", "wait"), degraded: look("half-disc", "wait"),
  unknown: look("hatched", "neutral"), unreachable: look("hatched", "neutral"),
  connecting: look("dotted", "neutral"), starting: look("dotted", "neutral"),
  draining: look("dotted", "neutral"), releasing: look("dotted", "neutral"),
  down: look("cross", "fail"), lost: look("cross", "fail"), gone: look("cross", "fail"),
  offline: look("cross", "fail"), dead: look("cross", "fail"), revoked: look("cross", "fail"),
  exited: look("cross", "fail"), exited_0: look("check", "ok"), retired: look("slashed", "neutral"),
  flapping: look("waves", "wait"), unreachable_callback: look("warning", "wait"),
  drift: look("warning", "wait"), late: look("warning", "wait"), doubt: look("warning", "wait"), alarm: look("warning", "wait"),
  filling: look("warning", "wait"), full: look("cross", "fail"), pending_approval: look("half", "wait"),
  approved: look("check", "ok"), rejected: look("slashed", "neutral"), expired: look("clock", "time"),
  reused: look("reused", "neutral"),
  open: look("half", "wait"), closed: look("check", "ok"), delivered: look("check", "ok"),
};

/** How a state is drawn. `worker` draws running workers as there (a disc), not as busy. */
export function lookOf(word: string | null | undefined, kind?: "worker"): Look {
  if (!word) return { word: "unknown", shape: "hatched", colour: "neutral", known: true };
  if (kind === "worker" && word === "running") return { word, shape: "disc", colour: "text", known: true };
  const found = Object.hasOwn(LOOKS, word) ? LOOKS[word] : undefined;
  return found
    ? { word, ...found, known: true }
    : { word, shape: "hatched", colour: "neutral", known: false };
}

/** The CSS colour of a look. */
export const colourOf = (colour: Colour) => `var(--${colour})`;

const STATES = ["failed", "timeout", "waiting", "paused", "running", "queued", "cancelled", "succeeded"];
const placeOf = (state: string) => STATES.indexOf(state) + 1 || 99;

/** States of executions by what needs a look first; words that are not known come last. */
export const byState = (a: string, b: string) => placeOf(a) - placeOf(b);
