// A list of any length: fixed row height, only what is visible in the document, moved through by
// keys. Rows never move by themselves; new ones wait behind a bar. Knows nothing of what a row is.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type MouseEvent, type ReactNode, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Problem } from "@/api/problem";
import { display, useDisplay } from "@/look/display";
import { useOfflineSince } from "@/live/stream";
import { count } from "@/look/format";
import { BASE, Link, navigate } from "@/router";
import { useKeys } from "@/shell/keys";
import { KeyHint } from "./key-hint";
import { offerAct } from "./offers";
import { AsOf, ErrorPanel, Skeleton } from "./says";
import { activeAt, useKeptPlace, usePlace } from "./table-place";
import { CARD_BELOW, activeIndex, moved, rowHeight, visibleColumns } from "./table-model";

export type Column<Row> = {
  id: string;
  head: ReactNode;
  /** A CSS width of a grid track: `120px`, `minmax(0, 1fr)`. */
  width: string;
  cell(row: Row): ReactNode;
  align?: "end";
  /** Left out where the list is narrower (600 and 1,000 px). */
  from?: "sm" | "lg";
  /** Where it stands in a card (below 600 px): first line, its right end, second line. */
  card?: "head" | "side" | "line" | "none";
  /** The cell is the link to the row. */
  link?: boolean;
  /** Sorted by this column: told to screen readers. */
  sorted?: "ascending" | "descending";
};

export type RowAct = { verb: string; hint?: string; command?: string; barred?: string; run(): void };

/** What the list's query says; a result of `useGet` fits. */
export type ListQuery = { isPending: boolean; error: Problem | null; dataUpdatedAt: number; refetch(): unknown };

export type TableProps<Row> = {
  /** What it lists, for screen readers. */
  label: string;
  rows: readonly Row[];
  columns: Column<Row>[];
  idOf(row: Row): string;
  /** Enter, or a click. */
  open?(row: Row): void;
  /** A row's address, so that it is a link. */
  to?(row: Row): string;
  /** A second line under the row: why it waits, what it failed with. Fixed in height. */
  second?(row: Row): ReactNode;
  /** No longer matches: stays in place, dimmed, until the list is taken anew. */
  dimmed?(row: Row): boolean;
  /** Drawn as the one that is shown beside the list. */
  current?: string;
  selected?: ReadonlySet<string>;
  select?(id: string): void;
  /** More rows exist: called when the end comes into sight. */
  more?: () => void;
  /** How many match in all, when it is known. */
  total?: number | null;
  /** New rows that wait; pressing the bar (or `n`) shows them. */
  fresh?: { count: number; show(): void; /** Instead of `12 new`. */ text?: string };
  /** Shown when there are no rows. */
  empty: ReactNode;
  /** Loading, failed and out of date are drawn from it. */
  query?: ListQuery;
  /** Takes the height that is left on the page, instead of its rows' up to 70 % of the window. */
  fill?: boolean;
  /** `j k x n` act from anywhere on the page. Off where a page has a second list. Default on. */
  keys?: boolean;
  /** Where the reader was in it is remembered under this name, for Back. */
  place?: string;
  /** The active row changed. */
  moved?(row: Row | undefined): void;
  /** What can be done to the marked row, besides opening and selecting it: offered by `.`. */
  acts?(row: Row): readonly RowAct[];
  /** A row's name, for those acts. */
  nameOf?(row: Row): string;
  /** More keys of the focused list. */
  onKey?(key: string, row: Row): boolean;
};

/** The row height of this reader, in pixels: density and pointer decide. */
function useRowPx(): number {
  const { density } = useDisplay();
  const [row, setRow] = useState(36);
  useLayoutEffect(() => {
    setRow(Number.parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row")) || 36);
  }, [density]);
  return row;
}

const interactive = "a, button, input, select, textarea, label, summary, [role=button]";

export function VirtualTable<Row>(props: TableProps<Row>) {
  const { rows, columns, idOf, query } = props;
  const box = useRef<HTMLDivElement>(null);
  const name = useId();
  const [width, setWidth] = useState(0);
  const { place } = props;
  const offline = useOfflineSince();
  const [active, setActive] = useState(() => activeAt(place));
  const row = useRowPx();
  const card = width > 0 && width < CARD_BELOW;
  const shown = useMemo(() => visibleColumns(columns, width || 1200, card), [columns, width, card]);
  const indexes = useMemo(() => {
    const map = new Map<string, number>();
    for (const [index, each] of rows.entries()) map.set(idOf(each), index);
    return map;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- idOf is a pure reader of a row
  }, [rows]);
  const at = activeIndex(active, (id) => indexes.get(id), rows.length);

  const heights = useMemo(
    () => rows.map((each) => rowHeight(row, card, hasSecond(props.second?.(each)))),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a second line depends on the row alone
    [rows, row, card],
  );
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: (index) => heights[index] ?? row,
    getItemKey: (index) => idOf(rows[index] as Row),
    overscan: 10,
  });
  usePlace(box, place, active, rows.length > 0);
  // A second line that came or went changes the offsets; the first visible row keeps its place.
  useKeptPlace(box, heights, indexes, virtual);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    setWidth(element.clientWidth);
    watch.observe(element);
    return () => watch.disconnect();
  }, [rows.length === 0]);

  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const { more } = props;
  useEffect(() => {
    if (more && rows.length > 0 && last >= rows.length - 20) more();
  }, [last, rows.length, more]);

  const go = (index: number) => {
    const target = rows[index];
    if (target === undefined) return;
    setActive({ id: idOf(target), index });
    props.moved?.(target);
    virtual.scrollToIndex(index);
    box.current?.focus({ preventScroll: true });
  };
  const open = (target: Row) => {
    if (props.open) props.open(target);
    else if (props.to) navigate(props.to(target));
  };
  const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 400) / row) - 2);
  const press = (key: string): boolean => {
    const to = moved(key, at, rows.length, page);
    const target = rows[at];
    if (to !== undefined) go(to);
    else if (key === "n" && props.fresh && props.fresh.count > 0) props.fresh.show();
    else if (target === undefined) return false;
    else if (key === "Enter") open(target);
    else if ((key === "x" || key === " ") && props.select) props.select(idOf(target));
    else return props.onKey?.(key, target) ?? false;
    return true;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.length === 1 && event.key !== " " && !display().keys) return;
    if (press(event.key)) event.preventDefault();
  };
  const global = props.keys !== false;
  useKeys(
    global
      ? [
          { key: "j", does: "next row", run: () => void press("j") },
          { key: "k", does: "row before", run: () => void press("k") },
          ...(props.select ? [{ key: "x", does: "select row", run: () => void press("x") }] : []),
          ...(props.fresh && props.fresh.count > 0 ? [{ key: "n", does: "show new rows", run: () => void press("n") }] : []),
        ]
      : [],
  );

  const marked = rows[at];
  const acting = useRef<(key: string) => void>(undefined);
  acting.current = (key) => void press(key);
  const offered = useRef(props);
  offered.current = props;
  const markedId = marked === undefined ? undefined : idOf(marked);
  const chosenNow = markedId !== undefined && (props.selected?.has(markedId) ?? false);
  useEffect(() => {
    const { acts, nameOf, select, open: opens, to, label } = offered.current;
    if (!global || offered.current.rows.length === 0) return;
    // What can be done to a row needs one: until one is marked, marking one is what can be done.
    if (marked === undefined) return offerAct({ name: `Mark the first row of ${label}`, hint: "j", open: () => acting.current?.("j") });
    const name = nameOf?.(marked) ?? idOf(marked);
    const own: RowAct[] = [
      ...(opens || to ? [{ verb: "Open", hint: "Enter", run: () => acting.current?.("Enter") }] : []),
      ...(acts?.(marked) ?? []),
      ...(select ? [{ verb: chosenNow ? "Select no more" : "Select", hint: "x", run: () => acting.current?.("x") }] : []),
    ];
    const ends = own.map((each) => offerAct({ name: `${each.verb} ${name}`, hint: each.hint, command: each.command, barred: each.barred, open: each.run }));
    return () => {
      for (const end of ends) end();
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the row's own changes make it anew
  }, [global, marked, chosenNow, rows.length === 0]);

  const press500 = useRef<ReturnType<typeof setTimeout>>(undefined);
  const held = useRef(false);
  if (rows.length === 0) {
    if (query?.isPending) return <Skeleton what={props.label} rows={8} />;
    if (query?.error) return <ErrorPanel error={query.error} what={props.label} retry={() => void query.refetch()} />;
    return <>{props.empty}</>;
  }
  const checks = props.select !== undefined;
  const template = [checks ? "28px" : "", ...shown.map((column) => column.width)].filter(Boolean).join(" ");
  const ending = query?.error ? <AsOf at={query.dataUpdatedAt} why={query.error.message} /> : offline === undefined || !query ? null : <AsOf at={offline} why="the plane does not answer" />;
  const cells = (each: Row, of: Column<Row>[]) => of.map((column) => (
    <div key={column.id} className="cell" role="gridcell">{column.align === "end" && !card ? <span className="flush">{wrapped(column, each, props.to)}</span> : wrapped(column, each, props.to)}</div>
  ));
  return (
    <div className={`list relative flex min-h-0 flex-col ${props.fill ? "fills" : ""}`}>
      {(ending || (props.fresh && props.fresh.count > 0)) && (
        <div className="list-over" data-card={card || undefined}>
          {ending}
          {props.fresh && props.fresh.count > 0 && (
            <button type="button" className="button new-bar" onClick={props.fresh.show}>
              {`▲ ${props.fresh.text ?? `${count(props.fresh.count)} new`}`}<KeyHint k="n" />
            </button>
          )}
        </div>
      )}
      <div
        ref={box}
        className="list-box overflow-auto"
        role="grid"
        aria-label={props.label}
        aria-rowcount={props.total === null || (props.total === undefined && more) ? -1 : (props.total ?? rows.length) + 1}
        aria-multiselectable={checks || undefined}
        aria-activedescendant={at >= 0 && items.some((item) => item.index === at) ? `${name}-${at}` : undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onFocus={(event) => {
          if (event.target === event.currentTarget && at < 0 && event.currentTarget.matches(":focus-visible")) {
            const first = rows[items.find((item) => item.start >= (box.current?.scrollTop ?? 0))?.index ?? 0];
            if (first !== undefined) setActive({ id: idOf(first), index: indexes.get(idOf(first)) ?? 0 });
          }
        }}
      >
        <div role="row" aria-rowindex={1} className={card ? "visually-hidden" : "list-head"} style={card ? undefined : { gridTemplateColumns: template }}>
          {checks && <div role="columnheader"><span className="visually-hidden">selected</span></div>}
          {shown.map((column) => (
            <div key={column.id} role="columnheader" aria-sort={column.sorted} className={`cell ${column.align === "end" ? "text-right" : ""}`}>{column.head}</div>
          ))}
        </div>
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {items.map((item) => {
            const each = rows[item.index] as Row;
            const id = idOf(each);
            const second = props.second?.(each);
            const chosen = props.selected?.has(id) ?? false;
            const tick = checks && (
              <div role="gridcell" className="flex items-center">
                <input type="checkbox" tabIndex={-1} checked={chosen} aria-label={`select ${id}`} onChange={() => props.select?.(id)} />
              </div>
            );
            const part = (where: "head" | "side" | "line") => shown.filter((column, index) => (column.card ?? (index < 2 ? "head" : column.align === "end" ? "side" : "line")) === where);
            return (
              <div
                key={item.key}
                id={`${name}-${item.index}`}
                role="row"
                aria-rowindex={item.index + 2}
                aria-selected={checks ? chosen : undefined}
                className="list-row"
                data-active={item.index === at || undefined}
                data-selected={chosen || undefined}
                data-current={props.current === id || undefined}
                data-dimmed={props.dimmed?.(each) || undefined}
                data-opens={props.open || props.to ? true : undefined}
                style={{ height: item.size, transform: `translateY(${item.start}px)` }}
                onPointerDown={(event) => {
                  held.current = false;
                  if (event.pointerType !== "touch" || !props.select) return;
                  clearTimeout(press500.current);
                  press500.current = setTimeout(() => {
                    held.current = true;
                    props.select?.(id);
                  }, 500);
                }}
                onPointerUp={() => clearTimeout(press500.current)}
                onPointerCancel={() => clearTimeout(press500.current)}
                onPointerMove={(event) => {
                  if (Math.abs(event.movementY) + Math.abs(event.movementX) > 4) clearTimeout(press500.current);
                }}
                onClick={(event) => {
                  if (held.current || clickedElsewhere(event)) return;
                  setActive({ id, index: item.index });
                  props.moved?.(each);
                  if ((event.ctrlKey || event.metaKey) && props.to) window.open(BASE + props.to(each), "_blank", "noopener");
                  else if (event.shiftKey && props.select) props.select(id);
                  else open(each);
                }}
              >
                {card ? (
                  <div className="list-card">
                    {tick}
                    <div className="min-w-0 flex-1">
                      <div className="flex min-w-0 items-center gap-2">
                        <div className="card-head flex min-w-0 flex-1 items-center gap-2">{cells(each, part("head"))}</div>
                        {cells(each, part("side"))}
                      </div>
                      <div className="card-line flex min-w-0 items-center gap-3 text-text-2">{cells(each, part("line"))}</div>
                    </div>
                  </div>
                ) : (
                  <div className="list-line" style={{ gridTemplateColumns: template, height: row }}>{tick}{cells(each, shown)}</div>
                )}
                {hasSecond(second) && <div className="list-second" role="gridcell" data-checks={checks || undefined} data-plain={shown[0]?.id !== "state" || undefined}>{second}</div>}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

const hasSecond = (second: ReactNode) => second !== undefined && second !== null && second !== false && second !== "";

function wrapped<Row>(column: Column<Row>, row: Row, to?: (row: Row) => string): ReactNode {
  const content = column.cell(row);
  return column.link && to ? <Link to={to(row)} tabIndex={-1}>{content}</Link> : content;
}

/** A click that meant something inside the row, or that ended a selection of text. */
function clickedElsewhere(event: MouseEvent<HTMLElement>): boolean {
  const inner = (event.target as Element).closest(interactive);
  if (event.defaultPrevented || (inner && event.currentTarget.contains(inner))) return true;
  return (window.getSelection()?.toString() ?? "") !== "";
}

/** A row that stands for many: opened and closed, with the number and how its members are. */
export function GroupRow({ open, toggle, title, count: members, children }: { open: boolean; toggle(): void; title: ReactNode; count: number; children?: ReactNode }) {
  return (
    <button type="button" className="group-row flex w-full items-center gap-2 text-left" style={{ minHeight: "var(--row)" }} aria-expanded={open} onClick={toggle}>
      <span aria-hidden className="w-3 text-text-3">{open ? "▾" : "▸"}</span>
      <span className="truncate">{title}</span>
      <span className="text-text-2">×{count(members)}</span>
      <span className="flex min-w-0 items-center gap-2 text-text-2">{children}</span>
    </button>
  );
}
