// The plane's time as an offset from this machine's, without React: the worker and the page each
// keep one. Monotonic on this side, so setting the local clock moves no age.

let offset = 0;
let precise = false;
let frozenAt: number | null = null;

/** This machine's time, monotonic, comparable between the tabs and the worker of one browser. */
export const localNow = () => performance.timeOrigin + performance.now();

/** The plane's time now, in milliseconds since the epoch. */
export function planeNow(): number {
  return frozenAt ?? Math.round(localNow() + offset);
}

/** The plane's time although the page may be frozen. */
export const runningNow = () => Math.round(localNow() + offset);

/** Hears the plane's time from a frame of the stream (milliseconds exact), received at `local`. */
export function heardFrame(at: string, local = localNow()): void {
  const time = Date.parse(at);
  if (Number.isNaN(time)) return;
  offset = time - local;
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

export function setFrozen(at: number | null): void {
  frozenAt = at;
}
