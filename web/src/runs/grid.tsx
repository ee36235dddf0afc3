// The rows of a run, as a tree in a table: windowed, moved through by keys, one row selected. The
// first column is the tree; what stands right of it is the caller's: bars, or columns of words.
import { type ComponentType, type ReactNode, memo, useCallback, useEffect, useMemo, useRef } from "react";
import { type Key, useKeys } from "@/shell/keys";
import type { Row } from "./folds";
import { places } from "./folds";
import { type Forest, type Step, has } from "./forest";
import { TreeCell } from "./row-cell";
import { sentence } from "./row-words";
import { Strip } from "./strip";
import { setStep } from "./view-state";
import { useWindow } from "./window";

export type CellsProps<Shared> = { row: Row; step: Step | null; forest: Forest; shared: Shared };

export type GridModel = {
  rows: Row[];
  forest: Forest;
  selected: number | null;
  cursor: string | null;
  setCursor(key: string): void;
  open(row: Row): void;
  toggle(row: Row, open?: boolean): void;
  /** Moments of the run, for words about what goes on. */
  now(): number;
  follow: boolean;
  stopFollowing(): void;
};

/** The keys of the panel's tabs. */
const TABS = [["w", "why"], ["i", "input"], ["o", "output"], ["t", "attempts"], ["m", "logs"]] as const;

/** Room for the strip at the right end of the rows. */
export const EDGE = 18;

type Props<Shared> = GridModel & {
  label: string;
  /** The columns: a CSS value, or a class that says them. */
  template?: string;
  columns?: string;
  height: number;
  head: ReactNode;
  headHeight: number;
  Cells: ComponentType<CellsProps<Shared>>;
  shared: Shared;
  /** Lines that stand over all rows: now, breaks of the axis. */
  over?: ReactNode;
  phone?: boolean;
  boxRef?: (element: HTMLDivElement | null) => void;
};

export function StepGrid<Shared>(props: Props<Shared>) {
  const { rows, forest, height, headHeight, cursor, setCursor, selected, toggle, open, follow, stopFollowing } = props;
  const box = useRef<HTMLDivElement>(null);
  const index = useMemo(() => new Map(rows.map((row, at) => [row.key, at])), [rows]);
  const where = useMemo(() => places(rows), [rows]);
  const find = useCallback((key: string) => index.get(key) ?? -1, [index]);
  const view = useWindow(box, rows, height, headHeight, find);
  const at = cursor === null ? -1 : find(cursor);
  const move = (to: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (!row) return;
    setCursor(row.key);
    view.show(find(row.key));
    stopFollowing();
  };
  // Wherever the focus was: the marked row is the one on which the next key acts.
  const walk = (to: number) => {
    box.current?.focus({ preventScroll: true });
    move(to);
  };
  const fold = (wanted: boolean) => {
    const row = rows[at];
    if (!row) return;
    if (row.kind !== "more" && row.open !== null && row.open !== wanted) toggle(row, wanted);
    else if (wanted) move(at + 1);
    else {
      let above = at - 1;
      while (above >= 0 && (rows[above] as Row).depth >= row.depth) above -= 1;
      if (above >= 0) move(above);
    }
  };
  useKeys([
    { key: "j", does: "next row", run: () => walk(at + 1) },
    { key: "k", does: "previous row", run: () => walk(at - 1) },
    // What a panel shows of the selected step, of the marked one while no panel is open.
    ...(selected === null ? TABS.map(([key, tab]): Key => ({ key, does: `${tab} of the marked step`, run: () => {
      const row = rows[at];
      if (row?.kind === "step") setStep((forest.steps[row.index] as Step).id, tab);
    } })) : []),
  ]);
  const onKeyDown = (event: React.KeyboardEvent) => {
    if (event.target !== box.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / height) - 2);
    const acts: Record<string, () => void> = {
      ArrowDown: () => move(at + 1), ArrowUp: () => move(at - 1), Home: () => move(0), End: () => move(rows.length - 1),
      PageDown: () => move(at + page), PageUp: () => move(at - page), ArrowRight: () => fold(true), ArrowLeft: () => fold(false),
      Enter: () => { const row = rows[at]; if (row) open(row); },
      " ": () => { const row = rows[at]; if (row) open(row); },
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };
  // The selected step is in sight when the view opens, and when it was selected elsewhere.
  const show = useRef(view.show);
  show.current = view.show;
  useEffect(() => {
    if (selected !== null) show.current(find(selected.toString(36)));
  }, [selected]); // eslint-disable-line
  useEffect(() => {
    if (follow) show.current(rows.length - 1);
  }, [follow, rows]);
  return (
    <div className="relative min-h-0 min-w-0 flex-1">
      <div
        ref={(element) => { box.current = element; props.boxRef?.(element); }}
        className="steps max-h-full overflow-y-scroll"
        role="treegrid" aria-label={props.label} aria-rowcount={rows.length} tabIndex={0}
        aria-activedescendant={at >= view.first && at < view.last ? `row-${cursor}` : undefined}
        onKeyDown={onKeyDown} onScroll={view.onScroll} onWheel={follow ? stopFollowing : undefined}
        onFocus={(event) => { if (event.target === box.current && at < 0 && rows.length > 0) setCursor((rows[view.first] as Row).key); }}
      >
        <div className={`steps-head ${props.columns ?? ""}`} role="row" style={{ gridTemplateColumns: props.template, height: headHeight, paddingRight: EDGE }}>{props.head}</div>
        <div role="rowgroup" style={{ position: "relative", height: rows.length * height }}>
          {props.over}
          {rows.slice(view.first, view.last).map((row, offset) => {
            const rowAt = view.first + offset;
            const step = row.kind === "step" ? (forest.steps[row.index] ?? null) : null;
            return (
              <RowView
                key={row.key} row={row} step={step} forest={forest} top={rowAt * height} height={height} at={rowAt}
                place={where[rowAt]?.place ?? 1} of={where[rowAt]?.of ?? 1} template={props.template} columns={props.columns}
                selected={step !== null && step.index === selected} cursor={row.key === cursor}
                Cells={props.Cells as ComponentType<CellsProps<unknown>>} shared={props.shared}
                setCursor={setCursor} open={open} toggle={toggle} now={props.now}
              />
            );
          })}
        </div>
      </div>
      {!props.phone && <Strip rows={rows} forest={forest} box={box} height={height} head={headHeight} />}
    </div>
  );
}

type RowProps = {
  row: Row; step: Step | null; forest: Forest; top: number; height: number; at: number; place: number; of: number; template?: string; columns?: string;
  selected: boolean; cursor: boolean; Cells: ComponentType<CellsProps<unknown>>; shared: unknown;
  setCursor(key: string): void; open(row: Row): void; toggle(row: Row, open?: boolean): void; now(): number;
};

/** A row is drawn again only when something that it shows has changed. */
const same = (a: RowProps, b: RowProps) =>
  a.step === b.step && a.top === b.top && a.height === b.height && a.selected === b.selected && a.cursor === b.cursor && a.Cells === b.Cells &&
  a.shared === b.shared && a.place === b.place && a.of === b.of && a.template === b.template && a.open === b.open && a.toggle === b.toggle &&
  sameRow(a.row, b.row) && (a.row.kind === "step" || a.forest === b.forest);

function sameRow(a: Row, b: Row): boolean {
  if (a.kind !== b.kind || a.key !== b.key || a.depth !== b.depth) return false;
  if (a.kind === "step" && b.kind === "step") return a.open === b.open && a.hidden === b.hidden && a.way === b.way && a.number === b.number;
  if (a.kind === "group" && b.kind === "group") return a.open === b.open && a.hidden === b.hidden && a.members.length === b.members.length && a.loose === b.loose;
  return a.kind === "more" && b.kind === "more" && a.left === b.left && a.shown === b.shown;
}

const RowView = memo(function RowView(props: RowProps) {
  const { row, step, forest, Cells } = props;
  // A cell whose step changed fades once; what is new, or was scrolled into sight, does not.
  const state = useRef(step?.state);
  const changed = step !== null && state.current !== step.state;
  state.current = step?.state;
  return (
    <div
      id={`row-${row.key}`} role="row" className={`step-row ${props.columns ?? ""}${changed ? " changed" : ""}`}
      aria-level={row.depth + 1} aria-rowindex={props.at + 1} aria-posinset={props.place} aria-setsize={props.of}
      aria-expanded={row.kind === "more" ? undefined : (row.open ?? undefined)} aria-selected={props.selected}
      data-cursor={props.cursor || undefined} data-way={(row.kind === "step" && row.way) || undefined}
      data-step={step?.id} data-state={step?.state} data-doubt={(step && has(step, "stoppedKnowing")) || undefined}
      title={step ? sentence(forest, step, props.now()) : undefined}
      style={{ top: 0, transform: `translateY(${props.top}px)`, height: props.height, gridTemplateColumns: props.template, paddingRight: EDGE }}
      onClick={() => { props.setCursor(row.key); props.open(row); }}
      onDoubleClick={() => props.toggle(row)}
    >
      <div role="gridcell" className="h-full min-w-0"><TreeCell row={row} forest={forest} step={step} toggle={props.toggle} /></div>
      <Cells row={row} step={step} forest={forest} shared={props.shared} />
    </div>
  );
}, same);
