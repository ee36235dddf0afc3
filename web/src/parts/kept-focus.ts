// Focus is never lost: where what had it is replaced, its place gets it; where it goes away with
// its row, the next thing that can have it does. For people who use no mouse.
import { type FocusEvent, type RefObject, useLayoutEffect, useRef } from "react";

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex='0']";

/** Nothing has the focus: what had it has left the document. */
const lost = () => document.activeElement === null || document.activeElement === document.body;
const shown = (element: HTMLElement) => element.isConnected && element.getClientRects().length > 0 && !element.matches(":disabled");

/** Gives the focus of what is about to go to what comes after it, else to what was before it. */
function passOn(from: HTMLElement): void {
  const all = [...document.querySelectorAll<HTMLElement>(FOCUSABLE)].filter((each) => !from.contains(each));
  const after = all.filter((each) => (from.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0 && each.closest("main"));
  const before = all.filter((each) => (from.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_PRECEDING) !== 0 && each.closest("main"));
  // Once all that goes is gone.
  const main = from.closest("main") !== null;
  queueMicrotask(() => {
    if (!lost()) return;
    // A notice stands outside of the page: from there, back to the page.
    const next = after.find(shown) ?? (main ? before.reverse().find(shown) : undefined) ?? document.querySelector<HTMLElement>("main");
    next?.focus({ preventScroll: true });
  });
}

/**
 * Keeps the focus in a box whose content changes under it. What is marked `data-kept` gets it, else
 * the first that can; a layer that is open over it keeps its own. Answers what the box listens for.
 */
export function useKeptFocus(box: RefObject<HTMLElement | null>) {
  const inside = useRef(false);
  useLayoutEffect(() => {
    const { current } = box;
    if (!inside.current || !lost() || current?.querySelector(":popover-open, dialog[open]")) return;
    (current?.querySelector<HTMLElement>("[data-kept]") ?? current?.querySelector<HTMLElement>(FOCUSABLE))?.focus({ preventScroll: true });
  });
  useLayoutEffect(() => () => {
    const { current } = box;
    if (current && inside.current && (lost() || current.contains(document.activeElement))) passOn(current);
  }, [box]);
  return {
    onFocus: () => {
      inside.current = true;
    },
    onBlur: (event: FocusEvent) => {
      // A button that is disabled while it sends has lost the focus, its reader has not left.
      if (event.relatedTarget === null && event.target.matches(":disabled")) return;
      if (!event.currentTarget.contains(event.relatedTarget)) inside.current = false;
    },
  };
}
