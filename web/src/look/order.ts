// An order that is made once and then kept: rows are sorted by need when the reader comes, and stay
// where they are until asked for. Pure.

/** Puts rows into the kept order; new ones come last, in their own order. */
export function kept<Row>(rows: readonly Row[], idOf: (row: Row) => string, order: readonly string[]): Row[] {
  const place = new Map(order.map((id, index) => [id, index]));
  return [...rows].sort((a, b) => (place.get(idOf(a)) ?? order.length) - (place.get(idOf(b)) ?? order.length));
}

/** How many rows would stand elsewhere in a new order, or are new. */
export function misplaced<Row>(rows: readonly Row[], idOf: (row: Row) => string, order: readonly string[], by: (a: Row, b: Row) => number): number {
  const now = [...rows].sort(by).map(idOf);
  const shown = kept(rows, idOf, order).map(idOf);
  return now.filter((id, index) => shown[index] !== id).length;
}
