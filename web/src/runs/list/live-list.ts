// A list that is read page by page and kept live without moving: rows keep their place when they
// change, new ones wait until they are asked for, and what no longer matches stays, dimmed. Pure;
// `use-live-list.ts` does the asking.

export type Page<Row> = { rows: readonly Row[]; next?: string; total?: number | null; counts?: Record<string, number> | null };

export type LiveList<Row> = {
  /** The cursor with which each page was asked; the first has none. */
  pages: readonly { cursor: string | undefined; ids: readonly string[]; next: string | undefined }[];
  rows: ReadonlyMap<string, Row>;
  /** In the list but found by its query no more. */
  dimmed: ReadonlySet<string>;
  /** Would be in the first page, and is not shown yet. */
  fresh: ReadonlySet<string>;
  /** The whole first page is new, and more follows: there are at least so many. */
  freshMore: boolean;
  total: number | null;
  counts: Record<string, number> | null;
};

export const EMPTY: LiveList<never> = { pages: [], rows: new Map<string, never>(), dimmed: new Set(), fresh: new Set(), freshMore: false, total: null, counts: null };

/** The first page, taken anew: the list begins from it. */
export function begun<Row>(page: Page<Row>, idOf: (row: Row) => string): LiveList<Row> {
  return {
    pages: [{ cursor: undefined, ids: page.rows.map(idOf), next: page.next }],
    rows: new Map(page.rows.map((row) => [idOf(row), row])),
    dimmed: new Set(), fresh: new Set(), freshMore: false, total: page.total ?? null, counts: page.counts ?? null,
  };
}

/** One page more at the end. What is there already is not there twice. */
export function extended<Row>(list: LiveList<Row>, cursor: string, page: Page<Row>, idOf: (row: Row) => string): LiveList<Row> {
  if (list.pages.at(-1)?.next !== cursor) return list;
  const rows = new Map(list.rows);
  const ids = page.rows.map(idOf).filter((id) => !rows.has(id));
  for (const row of page.rows) rows.set(idOf(row), row);
  return { ...list, rows, pages: [...list.pages, { cursor, ids, next: page.next }], total: page.total ?? list.total, counts: page.counts ?? list.counts };
}

/** A page that is shown, asked for again. Nothing moves. */
export function refreshed<Row>(list: LiveList<Row>, cursor: string | undefined, page: Page<Row>, idOf: (row: Row) => string): LiveList<Row> {
  const at = list.pages.findIndex((each) => each.cursor === cursor);
  const own = list.pages[at];
  if (!own) return list;
  const rows = new Map(list.rows);
  const dimmed = new Set(list.dimmed);
  const fresh = new Set(at === 0 ? [] : list.fresh);
  const there = new Set<string>();
  for (const row of page.rows) {
    const id = idOf(row);
    there.add(id);
    dimmed.delete(id);
    if (rows.has(id)) rows.set(id, row);
    else if (at === 0) fresh.add(id);
  }
  if (at === 0) {
    // New rows push old ones off the first page: only what should stand before the last is missing.
    const kept = own.ids.filter((id) => there.has(id));
    const last = kept.at(-1);
    const until = page.next === undefined ? own.ids.length : last === undefined ? 0 : own.ids.indexOf(last);
    for (const id of own.ids.slice(0, until)) if (!there.has(id)) dimmed.add(id);
  } else for (const id of own.ids) if (!there.has(id)) dimmed.add(id);
  const freshMore = at === 0 ? page.next !== undefined && page.rows.length > 0 && fresh.size === page.rows.length : list.freshMore;
  return { ...list, rows, dimmed, fresh, freshMore, total: page.total ?? list.total, counts: page.counts ?? list.counts };
}

/** The rows in the order in which they are shown. */
export function shown<Row>(list: LiveList<Row>): Row[] {
  return list.pages.flatMap((page) => page.ids.map((id) => list.rows.get(id)).filter((row): row is Row => row !== undefined));
}

/** Which pages show something of these ids: their cursors, the first page always. */
export function concerned<Row>(list: LiveList<Row>, ids: ReadonlySet<string>, most: number): (string | undefined)[] {
  const [first, ...rest] = list.pages;
  if (!first) return [];
  return [first.cursor, ...rest.filter((page) => page.ids.some((id) => ids.has(id))).map((page) => page.cursor)].slice(0, most);
}
