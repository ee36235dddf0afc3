// The one polite live region, and toasts. At most one sentence in five seconds is read out; a newer
// one takes the place of one that still waits.
import { type ReactNode, useSyncExternalStore } from "react";

const EVERY_MS = 5_000;

/** Decides what is read out when: the text to show, and what to wait for. Pure but for the clock. */
export class Announcer {
  private last = Number.NEGATIVE_INFINITY;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private next = "";
  constructor(
    private readonly show: (text: string) => void,
    private readonly now: () => number = () => performance.now(),
  ) {}
  say(text: string): void {
    this.next = text;
    const wait = this.last + EVERY_MS - this.now();
    if (wait <= 0) this.flush();
    else this.timer ??= setTimeout(() => this.flush(), wait);
  }
  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.last = this.now();
    this.show(this.next);
  }
}

function store<T>(initial: T) {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next: T) {
      value = next;
      for (const listener of listeners) listener();
    },
    subscribe(listener: () => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

const spoken = store("");
const announcer = new Announcer((text) => spoken.set(text));

/** Reads a sentence out: own acts, the end of what is selected, the connection. Nothing else. */
export const announce = (text: string) => announcer.say(text);
export const useSpoken = () => useSyncExternalStore(spoken.subscribe, spoken.get);

export type Toast = { id: number; says: ReactNode; undo?: () => void; until: number };
const toasts = store<readonly Toast[]>([]);
let serial = 0;
export const useToasts = () => useSyncExternalStore(toasts.subscribe, toasts.get);

/** Shows a toast; answers how to take it away. Three at most: the oldest goes. */
export function toast(says: ReactNode, { undo, ms = 10_000 }: { undo?: () => void; ms?: number } = {}): () => void {
  serial += 1;
  const id = serial;
  const gone = () => toasts.set(toasts.get().filter((each) => each.id !== id));
  const timer = setTimeout(gone, ms);
  toasts.set([...toasts.get().slice(-2), { id, says, undo, until: performance.now() + ms }]);
  return () => {
    clearTimeout(timer);
    gone();
  };
}
