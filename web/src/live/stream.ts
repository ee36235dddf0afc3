// The event stream as the pages see it: which topics are on screen, what arrives, and how old it
// is. How frames get here (one connection for all tabs) is `tab.ts`'s business, not a page's.
import { useEffect, useSyncExternalStore } from "react";
import type { Frame, LinkState } from "./frames";
import { type TabLink, joinLink } from "./tab";
import { heardFrame, localNow, runningNow } from "./time";

export type { PlaneEvent } from "./frames";

/** What the indicator shows. Times are the plane's. */
export type LiveState =
  | { state: "live" }
  | { state: "paused"; held: number }
  | { state: "reconnecting"; since: number }
  | { state: "offline"; since: number }
  | { state: "resynced"; why: string };

/** What a listener is told. `changed`: something of a slow topic moved; `resync`: refetch what is visible. */
export type LiveFrame = Exclude<Frame, { type: "tick" }>;
type Listener = (frame: LiveFrame) => void;
/** The plane as the last tick told it. */
export type PlaneTold = { version?: string; started?: string; /** The version that this page met first: its own. */ first?: string };

/** How long "Resynced" stays. */
const RESYNCED_MS = 5_000;
/** More than this is not held while paused: continuing then refetches. */
const HELD_MAX = 5_000;

/** A time of this machine as the plane's. */
const asPlane = (local: number) => runningNow() - (localNow() - local);

const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
const wanted = new Map<string, number>();
let link: TabLink | undefined;
let state: LinkState = { state: "reconnecting", since: localNow(), lastFrame: 0 };
let paused = false;
let held: LiveFrame[] = [];
let overflown = false;
let resynced: { why: string; timer: ReturnType<typeof setTimeout> } | undefined;
let told: PlaneTold = {};
let snapshot = taken();

function taken(): { live: LiveState; lastFrameAt: number; told: PlaneTold } {
  let live: LiveState;
  if (paused) live = { state: "paused", held: held.length };
  else if (state.state !== "live") live = { state: state.state, since: asPlane(state.since) };
  else live = resynced ? { state: "resynced", why: resynced.why } : { state: "live" };
  return { live, lastFrameAt: state.lastFrame ? asPlane(state.lastFrame) : 0, told };
}

let telling = false;
/** Four times a second at most, however many frames come. */
function changed(now = false): void {
  if (now) {
    snapshot = taken();
    for (const watcher of watchers) watcher();
  } else if (!telling) {
    telling = true;
    setTimeout(() => {
      telling = false;
      changed(true);
    }, 250);
  }
}

function deliver(frame: LiveFrame): void {
  for (const listener of listeners) listener(frame);
}

function hear(frame: Frame): void {
  if (frame.type === "tick") {
    heardFrame(frame.at, frame.local);
    if (frame.version !== told.version || frame.started !== told.started) told = { version: frame.version, started: frame.started, first: told.first ?? frame.version };
    return;
  }
  if (frame.type === "resync") {
    clearTimeout(resynced?.timer);
    resynced = {
      why: frame.why,
      timer: setTimeout(() => {
        resynced = undefined;
        changed(true);
      }, RESYNCED_MS),
    };
  }
  if (!paused) deliver(frame);
  else if (held.length < HELD_MAX) held.push(frame);
  else overflown = true;
}

/** Begins to listen; before it, only tests and the gallery see this module. */
function start(): TabLink {
  link ??= joinLink((message) => {
    if (message.is === "frame") hear(message.frame);
    else if (message.is === "state") {
      const before = state.state;
      state = message.state;
      if (before !== state.state) return changed(true);
    }
    changed();
  });
  return link;
}

const watch = (watcher: () => void) => {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
};

/** The connection's state, when (plane time) the last frame came, and what the plane says it is. */
export function useLiveState() {
  return useSyncExternalStore(watch, () => snapshot);
}

/** Since when what is shown may be out of date, because the plane does not answer: the last frame's time. */
export function useOfflineSince(): number | undefined {
  return useSyncExternalStore(watch, () => (snapshot.live.state === "offline" ? Math.round(snapshot.lastFrameAt || snapshot.live.since) : undefined));
}

/** Pauses and continues what arrives; what is held is counted and delivered on continuing. */
export function setPaused(next: boolean): void {
  if (paused === next) return;
  paused = next;
  if (!next) {
    const waiting = held;
    held = [];
    if (overflown) deliver({ type: "resync", why: "gap" });
    else for (const frame of waiting) deliver(frame);
    overflown = false;
  }
  changed(true);
}

/** Tries to connect now instead of after the back-off. */
export const reconnectNow = () => start().now();

/** Hears every frame, outside of components (the cache does). */
export function onFrame(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/**
 * Follows topics while the component is shown: `run:ID`, `execution:ID`, `agent:ID`, `node:ID`,
 * `worker:ID`, `runs`, `agents`, `fleet`, `summary`, `queues`. The listener gets every frame of
 * every topic on screen: look at the event before acting on it. Answers that are in the cache are
 * refreshed without it (`cache.ts`).
 */
export function useLive(topics: string[], listener?: Listener): void {
  const key = topics.join(",");
  useEffect(() => {
    const mine = key === "" ? [] : key.split(",");
    for (const topic of mine) wanted.set(topic, (wanted.get(topic) ?? 0) + 1);
    start().topics([...wanted.keys()]);
    return () => {
      for (const topic of mine) {
        const left = (wanted.get(topic) ?? 1) - 1;
        if (left > 0) wanted.set(topic, left);
        else wanted.delete(topic);
      }
      start().topics([...wanted.keys()]);
    };
  }, [key]);
  useEffect(() => (listener ? onFrame(listener) : undefined), [listener]);
}
