// Which rows of a long list are in the document: fixed height, only what is near the viewport. When
// rows come or go above it, the offset is corrected in the same frame, so that nothing moves.
import { type RefObject, useCallback, useLayoutEffect, useRef, useState } from "react";

const OVERSCAN = 8;
const STEP = 4;

export type Window = {
  first: number;
  last: number;
  /** Brings a row into sight, moving as little as possible. */
  show(index: number): void;
  /** Put on the scrolling element. */
  onScroll(): void;
};

/** Where a row that was drawn first before is now; -1 when it is gone. */
type Find = (key: string) => number;

export function useWindow(
  box: RefObject<HTMLElement | null>,
  rows: readonly { key: string }[],
  height: number,
  head: number,
  find: Find,
): Window {
  // Before anything is measured: no box is higher than the window.
  const [range, setRange] = useState(() => ({ first: 0, last: Math.ceil(innerHeight / height) }));
  const anchor = useRef<{ key: string; offset: number } | null>(null);

  const measure = useCallback(() => {
    const element = box.current;
    if (!element) return;
    const top = element.scrollTop;
    const first = Math.max(0, Math.floor((Math.floor(top / height) - OVERSCAN) / STEP) * STEP);
    const last = Math.ceil((Math.ceil((top + element.clientHeight) / height) + OVERSCAN) / STEP) * STEP;
    setRange((before) => (before.first === first && before.last === last ? before : { first, last }));
    const at = Math.floor(top / height);
    const row = rows[at];
    anchor.current = row && top > 0 ? { key: row.key, offset: top - at * height } : null;
  }, [box, rows, height]);

  useLayoutEffect(() => {
    const element = box.current;
    const before = anchor.current;
    if (element && before) {
      const at = find(before.key);
      const wanted = at < 0 ? element.scrollTop : at * height + before.offset;
      if (Math.abs(wanted - element.scrollTop) >= 1) element.scrollTop = wanted;
    }
    measure();
  }, [rows, height, box, find, measure]);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [box, measure]);

  const show = useCallback((index: number) => {
    const element = box.current;
    if (!element || index < 0) return;
    const top = index * height;
    const room = element.clientHeight - head;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height > element.scrollTop + room) element.scrollTop = top + height - room;
  }, [box, height, head]);

  return { ...range, last: Math.min(rows.length, range.last), show, onScroll: measure };
}
