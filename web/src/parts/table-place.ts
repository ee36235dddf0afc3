// Where the reader is in a list: kept when rows above change, and found again on Back.
import { useEffect, useLayoutEffect, useRef } from "react";

export type Active = { id: string; index: number };
/** Where readers were in lists, newest last. */
const places = new Map<string, { active: Active | undefined; top: number }>();
const PLACES_MOST = 20;

/** The active row that a list had when it was left. */
export const activeAt = (place: string | undefined): Active | undefined => (place === undefined ? undefined : places.get(place)?.active);

/** Remembers the scroll and the active row of a list, and goes back there when it comes again. */
export function usePlace(box: React.RefObject<HTMLDivElement | null>, place: string | undefined, active: Active | undefined, there: boolean): void {
  const now = useRef(active);
  now.current = active;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || place === undefined || !there) return;
    element.scrollTop = places.get(place)?.top ?? 0;
    const remember = () => {
      places.delete(place);
      places.set(place, { active: now.current, top: element.scrollTop });
      const oldest = places.keys().next().value;
      if (places.size > PLACES_MOST && oldest !== undefined) places.delete(oldest);
    };
    element.addEventListener("scroll", remember, { passive: true });
    return () => {
      element.removeEventListener("scroll", remember);
      remember();
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the box stays the same element
  }, [place, there]);
}

/** Keeps the first visible row where it is when heights above it, or rows before it, change. */
export function useKeptPlace(
  box: React.RefObject<HTMLDivElement | null>,
  heights: readonly number[],
  indexes: ReadonlyMap<string, number>,
  virtual: { measure(): void; getVirtualItemForOffset(offset: number): { key: React.Key; start: number } | undefined },
): void {
  const before = useRef<{ id: string; offset: number } | undefined>(undefined);
  useLayoutEffect(() => {
    virtual.measure();
    const element = box.current;
    const index = before.current && indexes.get(before.current.id);
    if (!element || !before.current || index === undefined || element.scrollTop === 0) return;
    let start = 0;
    for (let each = 0; each < index; each += 1) start += heights[each] ?? 0;
    element.scrollTop = start + before.current.offset;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only what moves rows
  }, [heights]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const remember = () => {
      const item = virtual.getVirtualItemForOffset(element.scrollTop);
      before.current = item && { id: String(item.key), offset: element.scrollTop - item.start };
    };
    remember();
    element.addEventListener("scroll", remember, { passive: true });
    return () => element.removeEventListener("scroll", remember);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the virtualizer stays the same object
  }, [indexes]);
}
