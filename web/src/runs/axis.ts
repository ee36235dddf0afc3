// The time axis of a run: from its first moment to its end, or to a bound that grows in steps while
// it goes on. Stretches in which nothing was at work are shortened, and the axis is broken there.
// Maps times to places between 0 and 1 and back. Knows nothing of pixels.
import { type Forest, type Step, childrenOf, isOpen, lastKnown } from "./forest";

export type Piece = {
  from: number;
  to: number;
  /** Places, from 0 to 1. */
  a: number;
  b: number;
  /** Nothing was at work here, and it is drawn shorter than it was. */
  broken: boolean;
};

export type Axis = { from: number; to: number; pieces: Piece[] };

type Span = [from: number, to: number];

/** Kinds in which somebody works, or a slot is waited for: these are never shortened. */
const AT_WORK = new Set(["queued", "dispatch", "running", "absorbed"]);
const IDLE_FROM = 0.2;
/** Shares of the width that breaks take: each, and all together at most. */
const BROKEN = 0.08;
const BROKEN_ALL = 0.24;
const GROWTH = 1.5;

/** Joins spans that touch. */
export function union(spans: Span[]): Span[] {
  const sorted = spans.filter(([from, to]) => to > from).sort((a, b) => a[0] - b[0]);
  const joined: Span[] = [];
  for (const [from, to] of sorted) {
    const last = joined.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return joined;
}

/** What of `spans` is not in `holes`; both joined and sorted. */
export function without(spans: Span[], holes: Span[]): Span[] {
  const left: Span[] = [];
  let at = 0;
  for (const [from, to] of spans) {
    let start = from;
    while (at > 0 && (holes[at - 1] as Span)[1] > from) at -= 1;
    for (; at < holes.length; at++) {
      const [holeFrom, holeTo] = holes[at] as Span;
      if (holeFrom >= to) break;
      if (holeTo <= start) continue;
      if (holeFrom > start) left.push([start, holeFrom]);
      start = Math.max(start, holeTo);
      if (start >= to) break;
    }
    if (start < to) left.push([start, to]);
  }
  return left;
}

const endOf = (step: Step, now: number) => step.ended ?? (isOpen(step) ? now : lastKnown(step));

/** When somebody of the run was at work. A caller that only waits for its calls is not. */
export function workOf(forest: Forest, now: number): Span[] {
  const work: Span[] = [];
  for (const step of forest.steps) {
    const own: Span[] = [];
    for (const [kind, from, to] of step.segments) if (AT_WORK.has(kind)) own.push([from, to ?? endOf(step, now)]);
    if (own.length === 0) continue;
    const children = childrenOf(forest, step.index);
    if (children.length === 0) work.push(...own);
    else {
      const calls = children.map((index): Span => {
        const child = forest.steps[index] as Step;
        return [child.created, endOf(child, now)];
      });
      work.push(...without(union(own), union(calls)));
    }
  }
  return union(work);
}

/**
 * From when to when the axis goes. While the run goes on it reaches further than now, so that it
 * grows in steps; `before` is the bound that is drawn now and stays until it is passed. While
 * nothing is at work it ends now: the stretch at its end is broken, and takes the growth.
 */
export function boundsOf(forest: Forest, work: Span[], now: number, before: Span | null): Span {
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  let open = false;
  for (const step of forest.steps) {
    from = Math.min(from, step.created);
    if (isOpen(step)) open = true;
    else to = Math.max(to, endOf(step, now));
  }
  if (!Number.isFinite(from)) return before ?? [now - 1, now];
  if (!open) return [from, Math.max(to, from + 1)];
  const reached = Math.max(now, to, from + 1);
  const idle = without([[from, reached]], work).filter(([start, end]) => end - start > (reached - from) * IDLE_FROM);
  if (idle.at(-1)?.[1] === reached) return [from, reached];
  if (before && before[0] === from && before[1] > reached) return before;
  const busy = reached - from - idle.reduce((sum, [start, end]) => sum + (end - start), 0);
  return [from, reached + Math.max(busy * (GROWTH - 1), 1000)];
}

/**
 * The axis. `opened` holds the beginnings of idle stretches that the reader opened. What has not
 * happened yet is not idle.
 */
export function axisOf(bounds: Span, work: Span[], now: number, opened: ReadonlySet<number>): Axis {
  const [from, to] = bounds;
  const length = to - from;
  const happened = Math.min(to, Math.max(now, from));
  const idle = without([[from, happened]], work).filter(
    ([start, end]) => end - start > length * IDLE_FROM && !opened.has(start - from),
  );
  const left = length - idle.reduce((sum, [start, end]) => sum + (end - start), 0);
  const broken = Math.min(BROKEN, BROKEN_ALL / Math.max(1, idle.length));
  const share = 1 - idle.length * broken;
  const pieces: Piece[] = [];
  let at = from;
  let place = 0;
  const add = (until: number, size: number, broken: boolean) => {
    if (until <= at) return;
    pieces.push({ from: at, to: until, a: place, b: place + size, broken });
    at = until;
    place += size;
  };
  const scale = (until: number) => (left > 0 ? ((until - at) / left) * share : 0);
  for (const [start, end] of idle) {
    add(start, scale(start), false);
    add(end, broken, true);
  }
  add(to, scale(to), false);
  const last = pieces.at(-1);
  if (last) last.b = 1;
  return { from, to, pieces };
}

/**
 * The end of the axis with room behind it for marks: a share of what is drawn in proportion. A share
 * of the whole would be hours after a long wait, which is itself drawn short.
 */
export function endWithRoom(bounds: Span, work: Span[], now: number, opened: ReadonlySet<number>, share: number): number {
  const inProportion = axisOf(bounds, work, now, opened).pieces.reduce((sum, piece) => (piece.broken ? sum : sum + piece.to - piece.from), 0);
  return bounds[1] + inProportion * share;
}

const pieceAt = (axis: Axis, test: (piece: Piece) => boolean): Piece | undefined => {
  let low = 0;
  let high = axis.pieces.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(axis.pieces[middle] as Piece)) high = middle;
    else low = middle + 1;
  }
  return axis.pieces[low];
};

/** Where a time is, from 0 to 1; outside of the axis it is beyond. */
export function placeOf(axis: Axis, time: number): number {
  const piece = pieceAt(axis, (each) => time < each.to);
  if (!piece || piece.to === piece.from) return 0;
  return piece.a + ((time - piece.from) / (piece.to - piece.from)) * (piece.b - piece.a);
}

/** Which time is at a place. */
export function timeAt(axis: Axis, place: number): number {
  const piece = pieceAt(axis, (each) => place < each.b);
  if (!piece || piece.b === piece.a) return axis.from;
  return piece.from + ((place - piece.a) / (piece.b - piece.a)) * (piece.to - piece.from);
}

/** The part of the axis that is in sight. */
export type View = { a: number; b: number };
export const WHOLE: View = { a: 0, b: 1 };
const SMALLEST = 1e-6;

/** Zooms around a place of the view (0 at its left end). */
export function zoomed(view: View, factor: number, around = 0.5): View {
  const size = Math.min(1, Math.max(SMALLEST, (view.b - view.a) / factor));
  const middle = view.a + (view.b - view.a) * around;
  return moved({ a: middle - size * around, b: middle + size * (1 - around) }, 0);
}

/** Moved by a share of its own width, and kept within the axis. */
export function moved(view: View, share: number): View {
  const size = Math.min(1, view.b - view.a);
  const a = Math.min(1 - size, Math.max(0, view.a + size * share));
  return { a, b: a + size };
}

export function viewOf(text: string): View {
  const [a, b] = text.split("-").map(Number);
  const fine = a !== undefined && b !== undefined && a >= 0 && b <= 1 && b - a >= SMALLEST;
  return fine ? { a, b } : WHOLE;
}

export const writeView = (view: View) =>
  view.a <= 0 && view.b >= 1 ? "" : `${Number(view.a.toFixed(7))}-${Number(view.b.toFixed(7))}`;

const STEPS = [1, 2, 5];
/** Round times at which the view is labelled: as milliseconds since the axis begins. */
export function ticksOf(axis: Axis, view: View, wanted: number): number[] {
  const whole = axis.pieces.filter((piece) => !piece.broken && piece.b > view.a && piece.a < view.b);
  const shown = whole.reduce((sum, piece) => {
    const part = (Math.min(piece.b, view.b) - Math.max(piece.a, view.a)) / (piece.b - piece.a);
    return sum + (piece.to - piece.from) * part;
  }, 0);
  if (shown <= 0) return [];
  const unit = niceUnit(shown / Math.max(1, wanted));
  const ticks: number[] = [];
  for (const piece of whole) {
    const from = Math.max(piece.from, timeAt(axis, Math.max(view.a, piece.a))) - axis.from;
    const to = Math.min(piece.to, timeAt(axis, Math.min(view.b, piece.b - 1e-12))) - axis.from;
    const first = Math.max(0, Math.ceil(from / unit - 1e-9));
    for (let n = first; n * unit <= to + unit * 1e-6 && ticks.length < 200; n++) ticks.push(n * unit);
  }
  return ticks;
}

/** 1, 2 or 5 of ms; of seconds, minutes and hours what clocks divide into. */
function niceUnit(least: number): number {
  for (let ten = 1; ten <= 10_000; ten *= 10) {
    for (const step of STEPS) if (ten * step >= least && ten * step <= 30_000) return ten * step;
  }
  for (const seconds of [60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400]) {
    if (seconds * 1000 >= least) return seconds * 1000;
  }
  const days = Math.ceil(least / 86_400_000);
  return days * 86_400_000;
}
