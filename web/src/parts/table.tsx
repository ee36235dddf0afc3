// A list of any length: fixed row height, only what is visible in the document, moved through by
// keys. Rows never move by themselves; new ones wait behind a bar. Knows nothing of what a row is.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useRef } from "react";

export type Column<Row> = {
  id: string;
  head: ReactNode;
  /** A CSS width of a grid track: `120px`, `minmax(0, 1fr)`. */
  width: string;
  cell(row: Row): ReactNode;
  align?: "end";
  /** Left out below this width. */
  from?: "sm" | "lg";
};

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
  selected?: ReadonlySet<string>;
  select?(id: string): void;
  /** More rows exist: called when the end comes into sight. */
  more?: () => void;
  /** How many match in all, when it is known. */
  total?: number | null;
  /** New rows that wait; pressing the bar (or `n`) shows them. */
  fresh?: { count: number; show(): void };
  /** Shown when there are no rows. */
  empty: ReactNode;
};

export function VirtualTable<Row>(props: TableProps<Row>) {
  const box = useRef<HTMLDivElement>(null);
  const { rows, columns, idOf } = props;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => 36,
    getItemKey: (index) => idOf(rows[index] as Row),
    overscan: 8,
  });
  const template = columns.map((column) => column.width).join(" ");
  if (rows.length === 0) return <>{props.empty}</>;
  return (
    <div ref={box} className="overflow-auto" role="table" aria-label={props.label} aria-rowcount={props.total ?? rows.length} style={{ maxHeight: "70vh" }}>
      <div role="row" className="sticky top-0 z-10 grid bg-surface text-text-3" style={{ gridTemplateColumns: template }}>
        {columns.map((column) => <div key={column.id} role="columnheader">{column.head}</div>)}
      </div>
      <div style={{ height: virtual.getTotalSize(), position: "relative" }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index] as Row;
          return (
            <div key={item.key} role="row" aria-rowindex={item.index + 2} className="absolute inset-x-0 grid items-center hover:bg-hover"
              style={{ gridTemplateColumns: template, height: item.size, transform: `translateY(${item.start}px)` }}
              onClick={() => props.open?.(row)}>
              {columns.map((column) => <div key={column.id} role="cell" className="truncate">{column.cell(row)}</div>)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
