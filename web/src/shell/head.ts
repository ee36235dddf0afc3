// Where a page's head goes, and whether the reader has just come to the page by a link: then the
// focus goes to its h1, so that a screen reader says where one is.
import { useSyncExternalStore } from "react";

let head: HTMLElement | null = null;
const watchers = new Set<() => void>();
let moved = false;

export const setHead = (element: HTMLElement | null) => {
  head = element;
  for (const watcher of watchers) watcher();
};

export function useHead(): HTMLElement | null {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => head,
  );
}

/** The reader went to another page. */
export const pageChanged = () => {
  moved = true;
};

/** The head of the new page is there: its h1 takes the focus, once. */
export function focusTitle(): void {
  const title = head?.querySelector<HTMLElement>("h1");
  if (!moved || !title) return;
  moved = false;
  title.tabIndex = -1;
  title.focus({ preventScroll: true });
}
