// One connection to the plane's event stream: connects, resumes after a loss by the last id,
// tells its state. Reconnects for ever. Knows nothing of pages.
import { heardFrame, planeNow } from "./clock";
import type { LiveFrame, LiveState, PlaneEvent } from "./stream";

export type LinkEvents = {
  frame(frame: LiveFrame): void;
  state(live: LiveState, lastFrameAt: number): void;
};

/** Later than this without a frame, the connection counts as lost (keep-alive is 5 s). */
const SILENCE_MS = 15_000;
const CHANGE_DELAY_MS = 300;

export function openLink(events: LinkEvents) {
  let source: EventSource | undefined;
  let topics: string[] = [];
  let cursor = "";
  let attempts = 0;
  let since = planeNow();
  let lastFrameAt = 0;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let change: ReturnType<typeof setTimeout> | undefined;
  let watchdog: ReturnType<typeof setTimeout> | undefined;
  let paused = false;
  let held: LiveFrame[] = [];

  const tellState = (live: LiveState) => events.state(paused ? { state: "paused", held: held.length } : live, lastFrameAt);
  const deliver = (frame: LiveFrame) => {
    if (paused) {
      held.push(frame);
      if (held.length > 5_000) held = [{ type: "resync", why: "gap" }];
      tellState({ state: "live" });
    } else events.frame(frame);
  };
  const seen = () => {
    lastFrameAt = planeNow();
    clearTimeout(watchdog);
    watchdog = setTimeout(lost, SILENCE_MS);
    tellState({ state: "live" });
  };

  function lost() {
    source?.close();
    source = undefined;
    clearTimeout(watchdog);
    if (attempts === 0) since = planeNow();
    attempts += 1;
    tellState(attempts > 4 ? { state: "offline", since } : { state: "reconnecting", since });
    const wait = Math.min(10_000, 500 * 2 ** Math.min(attempts - 1, 5)) * (0.5 + Math.random() / 2);
    clearTimeout(retry);
    retry = setTimeout(connect, wait);
  }

  function connect() {
    clearTimeout(retry);
    source?.close();
    const query = new URLSearchParams({ topics: topics.length ? topics.join(",") : "summary" });
    if (cursor) query.set("cursor", cursor);
    const opened = new EventSource(`/api/v1/events?${query}`);
    source = opened;
    watchdog = setTimeout(lost, SILENCE_MS);
    opened.onopen = () => {
      if (attempts > 0 && cursor === "") deliver({ type: "resync", why: "reconnected" });
      else if (attempts > 0) deliver({ type: "resync", why: "reconnected" });
      attempts = 0;
      seen();
    };
    opened.onerror = () => {
      if (source === opened) lost();
    };
    const parsed = (message: Event): Record<string, unknown> | undefined => {
      seen();
      const { data, lastEventId } = message as MessageEvent<string>;
      if (lastEventId) cursor = lastEventId;
      try {
        return JSON.parse(data) as Record<string, unknown>;
      } catch {
        return undefined;
      }
    };
    opened.onmessage = (message) => {
      const event = parsed(message);
      if (event) deliver({ type: "event", event: event as unknown as PlaneEvent });
    };
    opened.addEventListener("tick", (message) => {
      const tick = parsed(message);
      if (typeof tick?.at === "string") heardFrame(tick.at);
      if (typeof tick?.position === "string" && !cursor) cursor = tick.position;
    });
    opened.addEventListener("changed", (message) => {
      const changed = parsed(message);
      if (typeof changed?.topic === "string") deliver({ type: "changed", topic: changed.topic });
    });
    for (const why of ["gap", "reset"] as const) {
      opened.addEventListener(why, (message) => {
        parsed(message);
        deliver({ type: "resync", why });
      });
    }
  }

  connect();
  return {
    topics(next: string[]) {
      const sorted = [...next].sort();
      if (sorted.join() === topics.join()) return;
      topics = sorted;
      clearTimeout(change);
      change = setTimeout(connect, CHANGE_DELAY_MS);
    },
    pause(on: boolean) {
      paused = on;
      if (!on) {
        const waiting = held;
        held = [];
        for (const frame of waiting) events.frame(frame);
      }
      tellState({ state: "live" });
    },
    now() {
      attempts = 0;
      connect();
    },
  };
}
