// The plane's time. Ages and countdowns run on it, never on the reader's clock: the offset comes
// from the stream's frames and from `Date` headers, so a clock that is an hour off shows nothing wrong.
import { useSyncExternalStore } from "react";

let offset = 0;
let precise = false;
let frozenAt: number | null = null;

/** The plane's time now, in milliseconds since the epoch. */
export function planeNow(): number {
  return frozenAt ?? Math.round(performance.timeOrigin + performance.now() + offset);
}

/** Hears the plane's time from a frame of the stream (milliseconds exact). */
export function heardFrame(at: string): void {
  const time = Date.parse(at);
  if (Number.isNaN(time)) return;
  offset = time - (performance.timeOrigin + performance.now());
  precise = true;
}

/** Hears the time of a `Date` header: whole seconds, so it only counts until a frame was heard. */
export function heard(date: string | null, askedAt: number): void {
  if (precise || !date) return;
  const time = Date.parse(date);
  if (Number.isNaN(time)) return;
  const middle = performance.timeOrigin + (askedAt + performance.now()) / 2;
  offset = time + 500 - middle;
}

/** Stops the clock at a time (an absolute range freezes the page), or lets it run again. */
export function freeze(at: number | null): void {
  frozenAt = at;
  for (const listener of listeners) listener();
}

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let second = 0;

/** The plane's time in whole seconds; the component renders once a second while it is shown. */
export function useSecond(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      timer ??= setInterval(() => {
        for (const each of listeners) each();
      }, 1000);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) {
          clearInterval(timer);
          timer = undefined;
        }
      };
    },
    () => {
      second = Math.floor(planeNow() / 1000);
      return second;
    },
  );
}
