// What travels between the plane's stream, the worker that holds it, and the tabs.
import type { components } from "muster-openapi";

export type PlaneEvent = components["schemas"]["EventShown"];

/** `changed`: something of a slow topic moved; `resync`: refetch what is visible; `tick`: the plane's time. */
export type Frame =
  | { type: "event"; event: PlaneEvent }
  | { type: "changed"; topic: string }
  | { type: "resync"; why: "gap" | "reset" | "reconnected" }
  | { type: "tick"; at: string; /** When it came, on this machine's clock. */ local: number; version?: string; started?: string };

/** Times are this machine's (`localNow`); 0 when there was none. */
export type LinkState =
  | { state: "live"; lastFrame: number }
  | { state: "reconnecting" | "offline"; since: number; lastFrame: number };

/** From a tab. */
export type ToHub =
  | { to: "hub"; from: string; is: "topics"; topics: string[] }
  | { to: "hub"; from: string; is: "alive" | "bye" | "now" };

/** To all tabs. `lead`: a new one leads, say your topics again. */
export type ToTab =
  | { to: "tab"; is: "frame"; frame: Frame; cursor: string }
  | { to: "tab"; is: "state"; state: LinkState }
  | { to: "tab"; is: "lead" };
