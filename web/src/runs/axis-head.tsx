// The labels of the time axis, its breaks, and the brush: drag over it to see a part of the time.
import { useLayoutEffect, useRef, useState } from "react";
import { duration } from "@/look/format";
import { type Axis, type View, placeOf, ticksOf } from "./axis";

type Props = {
  axis: Axis; view: View; width: number; setWidth(width: number): void; zoomTo(view: View): void;
  /** Opens the idle stretch that begins so many milliseconds after the axis. */
  openIdle(start: number): void;
  now: number | null;
};

/** `0`, `400 ms`, `2 s`, `1 m 30 s`, `1 h 05 m`: a time since the beginning, no longer than needed. */
export function since(ms: number): string {
  if (ms === 0) return "0";
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(3))} s`;
  return duration(ms).replace(" 00 s", "");
}

/** What stands over a broken part: how long it is, where there is room to read it. */
const brokenText = (long: string, width: number) => (width >= (long.length + 4) * 6.6 ? `⌇ ${long} ⌇` : width >= long.length * 6.6 ? long : "⌇");

export function AxisHead({ axis, view, width, setWidth, zoomTo, openIdle, now }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [brush, setBrush] = useState<{ from: number; to: number } | null>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [setWidth]);

  const x = (place: number) => ((place - view.a) / (view.b - view.a)) * width;
  const ticks = ticksOf(axis, view, Math.max(3, Math.floor(width / 110)));
  const at = (event: React.PointerEvent) => Math.min(width, Math.max(0, event.clientX - (box.current?.getBoundingClientRect().left ?? 0)));
  const broken = axis.pieces.filter((piece) => piece.broken && piece.b > view.a && piece.a < view.b);
  let last = -100;
  return (
    <div
      ref={box} className="axis" title="drag to zoom to a part · Ctrl and wheel zooms · ⇧Z shows all"
      onPointerDown={(event) => { if (event.button === 0 && !(event.target instanceof HTMLButtonElement)) { event.currentTarget.setPointerCapture(event.pointerId); setBrush({ from: at(event), to: at(event) }); } }}
      onPointerMove={(event) => { if (brush) setBrush({ ...brush, to: at(event) }); }}
      onPointerUp={() => {
        if (brush && Math.abs(brush.to - brush.from) > 4) {
          const place = (pixel: number) => view.a + (pixel / width) * (view.b - view.a);
          zoomTo({ a: place(Math.min(brush.from, brush.to)), b: place(Math.max(brush.from, brush.to)) });
        }
        setBrush(null);
      }}
      onPointerCancel={() => setBrush(null)}
    >
      {ticks.map((tick) => {
        const left = x(placeOf(axis, axis.from + tick));
        // What would run into a broken part is left out: a cut number is another number.
        const end = left + since(tick).length * 7 + 6;
        if (left - last < 56 || left > width - 20 || broken.some((piece) => left < x(piece.b) && end > x(piece.a))) return null;
        last = left;
        return <span key={tick} className="axis-tick" style={{ left: 0, transform: `translateX(${left}px)` }}>{since(tick)}</span>;
      })}
      {broken.map((piece) => (
        <button
          key={piece.from} type="button" className="axis-break" style={{ left: x(piece.a), width: Math.max(10, x(piece.b) - x(piece.a)) }}
          title={`the axis is broken: ${duration(piece.to - piece.from)} in which nothing was at work; click to see it in full`}
          aria-label={`Idle for ${duration(piece.to - piece.from)}: show in full`} onClick={() => openIdle(piece.from - axis.from)}
        >
          <span className="whitespace-nowrap">{brokenText(duration(piece.to - piece.from), x(piece.b) - x(piece.a))}</span>
        </button>
      ))}
      {now !== null && x(placeOf(axis, now)) > 0 && x(placeOf(axis, now)) < width - 24 && <span className="axis-now" style={{ left: 0, transform: `translateX(${x(placeOf(axis, now))}px)` }}>now</span>}
      {brush && <div className="axis-brush" style={{ left: Math.min(brush.from, brush.to), width: Math.abs(brush.to - brush.from) }} />}
    </div>
  );
}
