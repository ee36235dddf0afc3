// Where time went: each row's bars on one axis. Zoom with + and −, pan with the wheel and Shift,
// drag over the axis to see a part; z shows the selection, Z all of it.
import { memo, useEffect, useMemo, useRef, useState } from "react";
import { planeNow, useSecond } from "@/live/clock";
import { useDisplay } from "@/look/display";
import { duration } from "@/look/format";
import { leftNow } from "@/look/left";
import { saidShort } from "@/look/said";
import { setQuery } from "@/router";
import { useKeys } from "@/shell/keys";
import { AxisHead } from "./axis-head";
import { type Axis, type View, WHOLE, axisOf, boundsOf, endWithRoom, moved, placeOf, workOf, writeView, zoomed } from "./axis";
import { buckets, drawn } from "./bars";
import { type Cancel, cancelsOf, spanOf } from "./cancelled";
import type { Critical, Stretch } from "./critical";
import { type CellsProps, EDGE, type GridModel, StepGrid } from "./grid";
import { chosenOf } from "./model";
import { type Forest, type Step, has, isOpen, tookOf } from "./forest";
import { placeLabel } from "./label";
import { GroupBars, type Scale, StepBars, xOf } from "./marks";
import { whyOf } from "./row-words";
import { setStep, setZoom } from "./view-state";

const HEAD = 32;
/** What stands behind the end of a bar: a mark, the bracket of a cancel. */
const MARKS_PX = 24;

type Shared = {
  scale: Scale;
  /** When bars that go on end: moves once a second, and only while something goes on. */
  now: number;
  path: ReadonlyMap<number, Stretch[]> | null;
};

type Props = GridModel & {
  label: string;
  height: number;
  goesOn: boolean;
  zoom: View;
  idle: ReadonlySet<number>;
  critical: Critical;
  showPath: boolean;
};

export function TimeView(props: Props) {
  const { forest, zoom, idle, critical, showPath } = props;
  const now = useNow(props.goesOn, props.now);
  const [width, setWidth] = useState(0);
  const bounds = useRef<[number, number] | null>(null);
  const work = useMemo(() => workOf(forest, now), [forest, now]);
  bounds.current = boundsOf(forest, work, now, bounds.current);
  const [from, end] = bounds.current;
  // Room for the marks behind the last end; while it goes on, there is room anyway.
  const room = Math.max(0.04, width > 0 ? MARKS_PX / width : 0);
  const to = useMemo(() => (props.goesOn ? end : endWithRoom([from, end], work, now, idle, room)), [props.goesOn, from, end, work, now, idle, room]);
  const axis = useMemo(() => axisOf([from, to], work, now, idle), [from, to, work, now, idle]);
  const scale = useMemo<Scale>(() => ({ axis, view: zoom, width }), [axis, zoom, width]);
  const path = useMemo(() => {
    if (!showPath) return null;
    const found = new Map<number, Stretch[]>();
    for (const stretch of critical.stretches) found.set(stretch.index, [...(found.get(stretch.index) ?? []), stretch]);
    return found;
  }, [critical, showPath]);
  const cancels = useMemo(() => cancelsOf(forest), [forest]);
  const shared = useMemo<Shared>(() => ({ scale, now, path }), [scale, now, path]);
  const box = useRef<HTMLDivElement | null>(null);

  const zoomTo = (next: View) => setZoom(next, writeView);
  const showSelection = () => {
    const step = forest.steps[chosenOf(props) ?? -1];
    if (!step) return;
    const a = placeOf(axis, step.created);
    const b = placeOf(axis, step.created + tookOf(step, now));
    const room = Math.max((b - a) * 0.1, 1e-5);
    zoomTo({ a: Math.max(0, a - room), b: Math.min(1, b + room) });
  };
  useKeys([
    { key: "+", does: "zoom in", run: () => zoomTo(zoomed(zoom, 2)) },
    { key: "=", does: "zoom in", run: () => zoomTo(zoomed(zoom, 2)) },
    { key: "-", does: "zoom out", run: () => zoomTo(zoomed(zoom, 0.5)) },
    { key: "z", does: "zoom to the selected step, or the marked one", run: showSelection },
    { key: "Shift+Z", does: "show all of the time", run: () => zoomTo(WHOLE) },
    { key: ",", does: "earlier", run: () => zoomTo(moved(zoom, -0.25)) },
    { key: ";", does: "later", run: () => zoomTo(moved(zoom, 0.25)) },
  ]);
  useWheel(box, zoom, zoomTo);

  const openIdle = (start: number) => setQuery({ idle: [...idle, start].join("-") });
  return (
    <StepGrid
      {...props}
      boxRef={(element) => { box.current = element; }}
      template="minmax(200px, 34%) minmax(0, 1fr)"
      headHeight={HEAD}
      head={
        <>
          <div className="flex items-center justify-between gap-2 pb-1 pl-7" role="columnheader">Step</div>
          <div role="columnheader" className="min-w-0" aria-label="Time">
            <AxisHead axis={axis} view={zoom} width={width} setWidth={setWidth} zoomTo={zoomTo} openIdle={openIdle} now={props.goesOn ? now : null} />
          </div>
        </>
      }
      Cells={TimeCells}
      shared={shared}
      over={<><Lines scale={scale} axis={axis} now={props.goesOn ? now : null} /><Brackets cancels={cancels} rows={props.rows} scale={scale} height={props.height} /></>}
    />
  );
}

/** The plane's time, once a second while something goes on; still otherwise. */
function useNow(open: boolean, now: () => number): number {
  const second = useSecond();
  return useMemo(() => now(), [open ? second : 0, now]); // eslint-disable-line
}

function useWheel(box: React.RefObject<HTMLDivElement | null>, zoom: View, zoomTo: (view: View) => void) {
  const state = useRef({ zoom, zoomTo });
  state.current = { zoom, zoomTo };
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const onWheel = (event: WheelEvent) => {
      const { zoom: view, zoomTo: go } = state.current;
      const axis = element.querySelector(".axis")?.getBoundingClientRect();
      if (!axis) return;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const around = Math.min(1, Math.max(0, (event.clientX - axis.left) / axis.width));
        go(zoomed(view, Math.exp(-event.deltaY / 200), around));
      } else if ((event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) && view.b - view.a < 1) {
        event.preventDefault();
        go(moved(view, (event.deltaX || event.deltaY) / axis.width));
      }
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [box]);
}

/** Over all rows: where the axis is broken, and now. They stand right of the names. */
function Lines({ scale, axis, now }: { scale: Scale; axis: Axis; now: number | null }) {
  const inside = (x: number) => x >= 0 && x <= scale.width;
  const left = (x: number) => `calc(100% - ${EDGE + scale.width - x}px)`;
  const at = now === null ? -1 : xOf(scale, now);
  return (
    <div aria-hidden>
      {axis.pieces.filter((piece) => piece.broken).map((piece) => {
        const x = xOf(scale, piece.from);
        const end = xOf(scale, piece.to);
        if (end < 0 || x > scale.width) return null;
        return <div key={piece.from} className="time-line" style={{ left: left(Math.max(0, x)), width: Math.min(end, scale.width) - Math.max(0, x), borderInline: "1px dashed var(--line)" }} />;
      })}
      {now !== null && inside(at) && <div className="time-line" style={{ left: left(0), transform: `translateX(${at}px)`, background: "var(--run)", opacity: 0.6 }} />}
    </div>
  );
}

/** Behind the ends of what one cancel ended: a bracket over its rows. The words stand above all rows. */
function Brackets({ cancels, rows, scale, height }: { cancels: readonly Cancel[]; rows: GridModel["rows"]; scale: Scale; height: number }) {
  return (
    <div aria-hidden>
      {cancels.map((cancel) => {
        const span = spanOf(cancel, rows);
        const x = xOf(scale, cancel.at);
        if (!span || span.first === span.last || x < 0 || x > scale.width) return null;
        return <div key={cancel.at} className="cancel-bracket" data-cancel={cancel.members.length} title={cancel.text} style={{ left: `calc(100% - ${EDGE + scale.width - x - 8}px)`, top: span.first * height + 4, height: (span.last - span.first + 1) * height - 8 }} />;
      })}
    </div>
  );
}

function TimeCells({ row, step, forest, shared }: CellsProps<Shared>) {
  const { scale, now, path } = shared;
  if (scale.width === 0) return <div role="gridcell" className="step-time" />;
  return (
    <div role="gridcell" className="step-time">
      {row.kind === "step" && step && <StepTime step={step} scale={scale} now={isOpen(step) ? now : 0} path={path?.get(step.index) ?? null} />}
      {row.kind === "group" && <GroupTime members={row.members} forest={forest} scale={scale} now={now} />}
    </div>
  );
}

const StepTime = memo(function StepTime({ step, scale, now, path }: { step: Step; scale: Scale; now: number; path: Stretch[] | null }) {
  const found = useMemo(() => drawn(step, now), [step, now]);
  const why = whyOf(step);
  const took = duration(tookOf(step, now));
  const replayed = has(step, "replayed");
  const { clock } = useDisplay();
  const said = why === null ? null : saidShort(isOpen(step) ? leftNow(why, step.saidAt, now) : why, clock, planeNow());
  const text = replayed ? (said ?? "reused") : step.state === "succeeded" ? took : [said, took].filter(Boolean).join(", ");
  const decide = step.state === "waiting" && found.bars.some((bar) => bar.kind === "person" && bar.open);
  const start = xOf(scale, step.created);
  const end = xOf(scale, Math.max(step.created, ...found.bars.map((bar) => bar.to)));
  return (
    <>
      <StepBars step={step} drawn={found} scale={scale} path={path} />
      <Label start={start} end={end + (has(step, "lateOutcome") ? 30 : has(step, "codeMayRun") ? 24 : 18)} width={scale.width} text={text} brief={replayed ? "reused" : took}>
        {decide && <button type="button" onClick={(event) => { event.stopPropagation(); setStep(step.id, "why"); }}>Decide</button>}
      </Label>
    </>
  );
});

/** The words of a bar, where there is room for them. */
function Label({ start, end, width, text, brief = text, children }: { start: number; end: number; width: number; text: string; brief?: string; children?: React.ReactNode }) {
  const place = placeLabel({ full: text, brief }, { start, end }, width, children ? 64 : 0);
  if (!place) return null;
  // Moved by transforms: a label that goes with the present shifts nothing else.
  const x = place.align === "start" ? `${place.left}px` : `calc(${place.left + place.width}px - 100%)`;
  const style = { left: 0, transform: `translate(${x}, -50%)`, maxWidth: place.width };
  return <span className="step-label" style={style}><span className="truncate">{place.text}</span>{children}</span>;
}

const PIXELS = 4;
const GroupTime = memo(function GroupTime({ members, forest, scale, now }: { members: readonly number[]; forest: Forest; scale: Scale; now: number }) {
  const steps = useMemo(() => members.map((index) => forest.steps[index] as Step), [members, forest]);
  const count = Math.max(1, Math.floor(scale.width / PIXELS));
  const found = useMemo(() => buckets(steps, count, (time) => xOf(scale, time) / scale.width, now), [steps, count, scale, now]);
  const middle = useMemo(() => p50(steps), [steps]);
  const first = found.findIndex(Boolean);
  const last = found.findLastIndex(Boolean);
  return (
    <>
      <GroupBars found={found} width={scale.width} />
      {first >= 0 && <Label start={first * PIXELS} end={(last + 1) * PIXELS + 6} width={scale.width} text={middle === null ? "none ended" : `p50 ${duration(middle)}`} />}
    </>
  );
});

/** The middle of how long those took that have ended; `null` when none has. */
export function p50(steps: readonly Step[]): number | null {
  const took = steps.filter((step) => step.ended !== null && step.replayOf === null).map((step) => (step.ended as number) - step.created).sort((a, b) => a - b);
  return took.length === 0 ? null : (took[Math.floor((took.length - 1) / 2)] ?? null);
}
