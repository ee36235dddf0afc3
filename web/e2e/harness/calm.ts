// Whether a page stays still: the shifts of its layout with what moved, and where its reader is
// (scroll, focus, selection, open layers), to be the same before and after a time full of events.
import type { Page } from "playwright-core";

export type Shift = { value: number; moved: string[] };

/** Begins to watch for shifts of the layout, those of the last frames included; call the answer for what moved. */
export async function shiftsFrom(page: Page): Promise<() => Promise<Shift[]>> {
  await page.evaluate(() => {
    type Entry = PerformanceEntry & { value: number; sources: { node: Node | null; previousRect: DOMRectReadOnly; currentRect: DOMRectReadOnly }[] };
    const kept = window as unknown as { shifts: Shift[] };
    kept.shifts = [];
    const from = performance.now();
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as Entry[]) {
        if (entry.startTime < from) continue;
        kept.shifts.push({
          value: entry.value,
          moved: entry.sources.map(({ node, previousRect: was, currentRect: is }) => {
            const element = node instanceof Element ? node : node?.parentElement;
            const at = (rect: DOMRectReadOnly) => `${Math.round(rect.x)},${Math.round(rect.y)} ${Math.round(rect.width)}×${Math.round(rect.height)}`;
            return `${element?.tagName.toLowerCase()}.${element?.className} "${(node?.textContent ?? "").slice(0, 40)}" ${at(was)} → ${at(is)}`;
          }),
        });
      }
    }).observe({ type: "layout-shift", buffered: true });
  });
  return () => page.evaluate(() => (window as unknown as { shifts: Shift[] }).shifts);
}

/** Where the reader is, in the page's own terms. `scroller`: the box that scrolls. */
export function readerAt(page: Page, scroller: string): Promise<Record<string, unknown>> {
  return page.evaluate((selector) => {
    const kept = window as unknown as { names?: WeakMap<Element, number>; named?: number };
    kept.names ??= new WeakMap();
    // An element made anew is another one, whatever it looks like.
    const nameOf = (element: Element | null): number | null => {
      if (!element) return null;
      const known = kept.names?.get(element);
      if (known !== undefined) return known;
      kept.named = (kept.named ?? 0) + 1;
      kept.names?.set(element, kept.named);
      return kept.named;
    };
    const { activeElement: focused } = document;
    const box = document.querySelector(selector);
    return {
      scroll: [scrollX, scrollY, box?.scrollTop ?? null, box?.scrollLeft ?? null],
      focused: [nameOf(focused), focused?.tagName, focused?.getAttribute("aria-label")],
      active: document.querySelector("[data-active]")?.querySelector("a")?.getAttribute("href") ?? null,
      selected: [...document.querySelectorAll("[role=row][aria-selected=true]")].map((row) => row.getAttribute("data-step") ?? row.querySelector("a")?.getAttribute("href")),
      layers: [...document.querySelectorAll(":popover-open, dialog[open]")].map((layer) => [nameOf(layer), layer.getAttribute("aria-label")]),
      address: location.href,
    };
  }, scroller);
}
