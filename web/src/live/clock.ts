// The plane's time. Ages and countdowns run on it, never on the reader's clock: the offset comes
// from the stream's frames and from `Date` headers, so a clock that is an hour off shows nothing wrong.
import { useSyncExternalStore } from "react";
import { planeNow, setFrozen } from "./time";

export { heard, heardFrame, planeNow } from "./time";

/** Stops the clock at a time (an absolute range freezes the page), or lets it run again. */
export function freeze(at: number | null): void {
  setFrozen(at);
  for (const listener of listeners) listener();
}

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

const subscribe = (listener: () => void) => {
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
};

/** The plane's time in whole seconds; the component renders once a second while it is shown. */
export function useSecond(): number {
  return useSyncExternalStore(subscribe, () => Math.floor(planeNow() / 1000));
}

/** How often an age of so many milliseconds is written anew: 1 s, above a minute 10 s, above an hour 60 s. */
export const tickOf = (age: number) => (Math.abs(age) < 60_000 ? 1_000 : Math.abs(age) < 3_600_000 ? 10_000 : 60_000);

/** The plane's time, rendering only as often as the age of `at` is worth. */
export function useAgeOf(at: number | null): number {
  useSyncExternalStore(subscribe, () => {
    const now = planeNow();
    return at === null ? 0 : Math.floor(now / tickOf(now - at));
  });
  return planeNow();
}
