// The event stream as the pages see it: which topics are on screen, what arrives, and how old it
// is. How frames get here (one connection for all tabs) is the link's business, not a page's.
import { useEffect, useSyncExternalStore } from "react";
import type { components } from "muster-openapi";
import { openLink } from "./link";

export type PlaneEvent = components["schemas"]["EventShown"];

/** What the indicator shows. */
export type LiveState =
  | { state: "live" }
  | { state: "paused"; held: number }
  | { state: "reconnecting"; since: number }
  | { state: "offline"; since: number }
  | { state: "resynced" };

/** What a listener is told. `changed`: something of a slow topic moved; `resync`: refetch what is visible. */
export type LiveFrame =
  | { type: "event"; event: PlaneEvent }
  | { type: "changed"; topic: string }
  | { type: "resync"; why: "gap" | "reset" | "reconnected" };

type Listener = (frame: LiveFrame) => void;

const listeners = new Set<Listener>();
const wanted = new Map<string, number>();
let snapshot: { live: LiveState; lastFrameAt: number } = { live: { state: "reconnecting", since: 0 }, lastFrameAt: 0 };
const watchers = new Set<() => void>();

const link = openLink({
  frame(frame) {
    for (const listener of listeners) listener(frame);
  },
  state(live, lastFrameAt) {
    snapshot = { live, lastFrameAt };
    for (const watcher of watchers) watcher();
  },
});

/** The connection's state, and when (plane time) the last frame came. */
export function useLiveState() {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => snapshot,
  );
}

/** Pauses and continues what arrives; what is held is counted and delivered on continuing. */
export const setPaused = (paused: boolean) => link.pause(paused);

/** Tries to connect now instead of after the back-off. */
export const reconnectNow = () => link.now();

/**
 * Follows topics while the component is shown: `run:ID`, `execution:ID`, `agent:ID`, `node:ID`,
 * `worker:ID`, `runs`, `agents`, `fleet`, `summary`, `queues`. The listener gets every frame of
 * every topic on screen: look at the event before acting on it.
 */
export function useLive(topics: string[], listener: Listener): void {
  const key = topics.join(",");
  useEffect(() => {
    const mine = key === "" ? [] : key.split(",");
    for (const topic of mine) wanted.set(topic, (wanted.get(topic) ?? 0) + 1);
    link.topics([...wanted.keys()]);
    return () => {
      for (const topic of mine) {
        const left = (wanted.get(topic) ?? 1) - 1;
        if (left > 0) wanted.set(topic, left);
        else wanted.delete(topic);
      }
      link.topics([...wanted.keys()]);
    };
  }, [key]);
  useEffect(() => {
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, [listener]);
}
