// One connection to the plane's event stream: connects, resumes after a loss by the last id, tells
// its state. Reconnects for ever. Runs in the worker that all tabs share, or in a tab; knows
// nothing of pages, of React or of other tabs.
import type { Frame, LinkState, PlaneEvent } from "./frames";
import { localNow } from "./time";

export type LinkEvents = {
  frame(frame: Frame, cursor: string): void;
  state(state: LinkState): void;
};

/** What of `EventSource` is used; tests have their own. */
export type Source = Pick<EventSource, "addEventListener" | "close">;
type Options = { open?: (address: string) => Source; random?: () => number; cursor?: string };

/** Later than this without a frame, the connection counts as lost (the plane sends one every 5 s). */
export const SILENCE_MS = 15_000;
/** Topics change with the page: wait until the page has settled. */
export const CHANGE_DELAY_MS = 300;
const BACKOFF_MIN_MS = 500;
const BACKOFF_MAX_MS = 10_000;
/** After so many failures it is said to be offline; it goes on trying. */
const OFFLINE_AFTER = 4;

/** How long to wait before the next try: doubled each time, spread, from 0.5 to 10 s. */
export function backoff(attempts: number, random: number): number {
  const whole = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** Math.min(attempts, 6));
  return Math.max(BACKOFF_MIN_MS, whole * (0.5 + random / 2));
}

export function openLink(events: LinkEvents, { open = (address) => new EventSource(address), random = Math.random, cursor: begin = "" }: Options = {}) {
  let source: Source | undefined;
  let topics: string[] = [];
  let cursor = begin;
  let attempts = 0;
  let lostAt: number | undefined;
  let lastFrame = 0;
  let everOpen = false;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let change: ReturnType<typeof setTimeout> | undefined;
  let watchdog: ReturnType<typeof setTimeout> | undefined;
  let closed = false;

  const watch = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(lost, SILENCE_MS);
  };
  const seen = () => {
    lastFrame = localNow();
    watch();
    events.state({ state: "live", lastFrame });
  };

  function lost() {
    source?.close();
    source = undefined;
    clearTimeout(watchdog);
    clearTimeout(retry);
    if (closed) return;
    lostAt ??= localNow();
    retry = setTimeout(connect, backoff(attempts, random()));
    attempts += 1;
    events.state({ state: attempts > OFFLINE_AFTER ? "offline" : "reconnecting", since: lostAt, lastFrame });
  }

  function connect() {
    clearTimeout(retry);
    clearTimeout(change);
    source?.close();
    if (closed) return;
    const query = new URLSearchParams({ topics: topics.length > 0 ? topics.join(",") : "summary" });
    if (cursor) query.set("cursor", cursor);
    const mine = open(`/api/v1/events?${query}`);
    source = mine;
    watch();
    const on = (name: string, does: (data: Record<string, unknown> | undefined) => void) =>
      mine.addEventListener(name, (message: Event) => {
        if (source !== mine) return;
        const { data, lastEventId } = message as MessageEvent<string>;
        if (lastEventId) cursor = lastEventId;
        seen();
        let parsed: Record<string, unknown> | undefined;
        try {
          parsed = JSON.parse(data) as Record<string, unknown>;
        } catch {
          parsed = undefined;
        }
        does(parsed);
      });
    mine.addEventListener("open", () => {
      if (source !== mine) return;
      const again = everOpen && attempts > 0;
      everOpen = true;
      attempts = 0;
      lostAt = undefined;
      seen();
      // The cursor resumes the events; what is summed up (overview, queues) has none, so look again.
      if (again) events.frame({ type: "resync", why: "reconnected" }, cursor);
    });
    mine.addEventListener("error", () => {
      if (source === mine) lost();
    });
    on("message", (event) => {
      if (event) events.frame({ type: "event", event: event as unknown as PlaneEvent }, cursor);
    });
    on("tick", (tick) => {
      if (typeof tick?.position === "string") cursor = tick.position;
      if (typeof tick?.at === "string") {
        events.frame({ type: "tick", at: tick.at, local: localNow(), version: text(tick.version), started: text(tick.started) }, cursor);
      }
    });
    on("changed", (changed) => {
      if (typeof changed?.topic === "string") events.frame({ type: "changed", topic: changed.topic }, cursor);
    });
    for (const why of ["gap", "reset"] as const) on(why, () => events.frame({ type: "resync", why }, cursor));
  }

  return {
    /** What is on screen. The first connects at once, a change after it has settled. */
    topics(next: readonly string[]) {
      const sorted = [...new Set(next)].sort();
      if (source && sorted.join() === topics.join()) return;
      topics = sorted;
      clearTimeout(change);
      if (!source && attempts === 0) connect();
      else change = setTimeout(connect, CHANGE_DELAY_MS);
    },
    /** Tries now instead of after the back-off. */
    now() {
      if (attempts > 0) connect();
    },
    close() {
      closed = true;
      for (const timer of [retry, change, watchdog]) clearTimeout(timer);
      source?.close();
    },
  };
}

const text = (value: unknown) => (typeof value === "string" ? value : undefined);
