// The arithmetic of a list: which columns fit, how high a row is, where the active row goes when
// a key is pressed or its row is gone. Knows no React and no document.

/** Widths of the list (not of the window) from which a column with that mark is shown. */
export const FROM = { sm: 600, lg: 1000 } as const;

/** Below this width a row is a card of two lines. */
export const CARD_BELOW = 600;

export const SECOND_PX = 20;
export const CARD_PX = 56;

/** Columns that are shown at a width. A card shows whatever says where in the card it stands. */
export function visibleColumns<C extends { from?: "sm" | "lg"; card?: string }>(columns: readonly C[], width: number, card = false): C[] {
  if (card) return columns.filter((column) => column.card !== "none" && (column.card !== undefined || column.from === undefined));
  return columns.filter((column) => column.from === undefined || width >= FROM[column.from]);
}

/** Height of a row: every row of a kind is as high as the next, so nothing has to be measured. */
export function rowHeight(row: number, card: boolean, second: boolean): number {
  return (card ? CARD_PX : row) + (second ? SECOND_PX : 0);
}

/** Where a key leads from `at` (−1: nowhere yet), or undefined when the key does not move. */
export function moved(key: string, at: number, count: number, page: number): number | undefined {
  if (count === 0) return undefined;
  const to = (index: number) => Math.max(0, Math.min(count - 1, index));
  switch (key) {
    case "j":
    case "ArrowDown":
      return at < 0 ? 0 : to(at + 1);
    case "k":
    case "ArrowUp":
      return at < 0 ? 0 : to(at - 1);
    case "Home":
      return 0;
    case "End":
      return count - 1;
    case "PageDown":
      return to(Math.max(at, 0) + page);
    case "PageUp":
      return to(Math.max(at, 0) - page);
    default:
      return undefined;
  }
}

/** The row that is active now: the same id where it still is, else the one that took its place. */
export function activeIndex(active: { id: string; index: number } | undefined, indexOf: (id: string) => number | undefined, count: number): number {
  if (!active || count === 0) return -1;
  return indexOf(active.id) ?? Math.min(active.index, count - 1);
}
