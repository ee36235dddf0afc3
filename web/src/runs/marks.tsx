// One step's time as a picture: bars with a pattern for each kind of time, marks for what happened.
// Draws what `bars.ts` says; maps times to pixels and nothing else.
import { type ReactNode, memo, useId } from "react";
import { type Axis, type View, placeOf } from "./axis";
import { type Bar, type Bucket, type Drawn, type Mark, endLook } from "./bars";
import type { Stretch } from "./critical";
import type { Step } from "./forest";

/** Turns times into pixels of the part that is in sight. */
export type Scale = { axis: Axis; view: View; width: number };
export const xOf = ({ axis, view, width }: Scale, time: number) => ((placeOf(axis, time) - view.a) / (view.b - view.a)) * width;

const TOP = 8;
const HIGH = 12;
/** Nothing is drawn narrower: what happened is seen. */
const LEAST = 2;

const PATTERNS = ["absorbed", "paused", "unknown", "observed", "time"] as const;

/** Holds the patterns that the bars within refer to: in the colours of the theme that they stand in. */
export function Patterned({ children }: { children: ReactNode }) {
  const id = useId().replace(/[^\w-]/g, "");
  const style = Object.fromEntries(PATTERNS.map((name) => [`--p-${name}`, `url(#${id}${name})`]));
  const diagonal = { height: 6, patternUnits: "userSpaceOnUse" } as const;
  return (
    <div style={{ display: "contents", ...style }}>
      <svg aria-hidden width="0" height="0" style={{ position: "absolute" }}>
        <defs>
          <pattern id={`${id}absorbed`} width="6" {...diagonal} patternTransform="rotate(45)">
            <rect width="2.4" height="6" style={{ fill: "var(--wait)" }} />
          </pattern>
          <pattern id={`${id}paused`} width="4" {...diagonal}>
            <rect width="1.5" height="6" style={{ fill: "var(--neutral)" }} />
          </pattern>
          <pattern id={`${id}unknown`} width="5" {...diagonal} patternTransform="rotate(135)">
            <rect width="1" height="6" style={{ fill: "var(--line)" }} />
          </pattern>
          <pattern id={`${id}observed`} width="4" {...diagonal} height={4}>
            <circle cx="1.5" cy="2" r="0.9" style={{ fill: "var(--text-2)" }} />
          </pattern>
          <pattern id={`${id}time`} width="4" {...diagonal} height={4}>
            <rect width="4" height="4" style={{ fill: "var(--tint-time)" }} />
            <circle cx="2" cy="2" r="1.1" style={{ fill: "var(--time)" }} />
          </pattern>
        </defs>
      </svg>
      {children}
    </div>
  );
}

function BarShape({ bar, step, x, end }: { bar: Bar; step: Step; x: number; end: number }) {
  const width = Math.max(LEAST, end - x);
  const box = { x: x + 0.5, y: TOP + 0.5, width: Math.max(1, width - 1), height: HIGH - 1 };
  const look = endLook(step);
  const tip = bar.open && <path d={`M${end} ${TOP} l6 6 l-6 6 z`} className={bar.kind === "running" || bar.kind === "observed" ? "b-solid" : undefined} fill={bar.kind === "absorbed" || bar.kind === "person" ? "var(--wait)" : "var(--neutral)"} />;
  switch (bar.kind) {
    case "queued":
      return <><rect {...box} className="b-queued" />{tip}</>;
    case "dispatch":
      return <rect {...box} y={TOP + 3.5} height={HIGH - 7} className="b-dispatch" />;
    case "running":
      if (look === "doubt") return <rect {...box} className="b-doubt" />;
      if (look === "time") return <rect {...box} className="b-time" />;
      return <><rect x={x} y={TOP} width={width} height={HIGH} className="b-solid" />{tip}</>;
    case "observed":
      return <><rect {...box} className="b-observed" />{tip}</>;
    case "absorbed":
      return <><rect {...box} className="b-absorbed" />{tip}</>;
    case "person":
      return <><path d={`M${x} ${TOP + 3}h${width}M${x} ${TOP + 9}h${width}`} className="b-person" fill="none" />{tip}</>;
    case "child":
      return <><path d={`M${x} ${TOP + 6}h${width}`} className="b-child" fill="none" />{tip}</>;
    case "paused":
      return <><rect {...box} className="b-paused" />{tip}</>;
    case "unknown":
      return <><rect {...box} className="b-unknown" />{width > 14 && <text x={x + width / 2} y={TOP + 10} textAnchor="middle" fontSize="10" fill="var(--text-2)" stroke="var(--surface)" strokeWidth="3" paintOrder="stroke">?</text>}</>;
  }
}

/** Marks are 12 px wide and stand at or behind their moment. */
function MarkShape({ mark, x, start }: { mark: Mark; x: number; start: number }) {
  const line = { fill: "none", stroke: "currentColor", strokeWidth: 1.5 };
  const at = (dx: number, dy: number) => `translate(${x + dx} ${dy})`;
  switch (mark.kind) {
    case "reused":
      return <path transform={at(0, 8)} d="M0 6h7M5 3l3 3-3 3M10.5 1.5v9" {...line} color="var(--text-2)" />;
    case "absorbed":
      return <path transform={at(-5, 0)} d="M8.5 4a3 3 0 1 1-1-2.3M7.8 0v2.2H5.6" {...line} strokeWidth={1.3} color="var(--wait)" />;
    case "decided":
      return <path transform={at(0, 14)} d="M0-5.5 4.5 0 0 5.5-4.5 0z" fill="var(--wait)" stroke="var(--surface)" />;
    case "failed":
      return <path transform={at(4, 10)} d="M0 0l8 8m0-8L0 8" {...line} strokeWidth={2} color="var(--fail)" />;
    case "doubt":
      return <text x={x + 3} y={19} fontSize="13" fontWeight="600" fill="var(--fail)">?</text>;
    case "timeout":
      return <g transform={at(9, 14)} {...line} color="var(--time)"><circle r="4.5" /><path d="M0-2.5V0l1.7 1.4" /></g>;
    case "cancelled":
      return <path transform={at(0, 0)} d="M0 0v28" {...line} color="var(--neutral)" />;
    case "code_runs":
      return <g><path d={`M${x + 1} 8l6 6l-6 6z`} fill={mark.text ? "var(--surface)" : "var(--run)"} stroke="var(--run)" strokeWidth="1.2" />{mark.text && <text x={x + 9} y={19} fontSize="12" fontWeight="600" fill="var(--text-2)">{mark.text}</text>}</g>;
    case "late":
      return <path transform={at(16, 7)} d="M0 14V0h8l-2 3 2 3H0" {...line} fill="var(--tint-wait)" color="var(--wait)" />;
    case "over_cap":
      return <path transform={`translate(${start - 11} 8)`} d="M1 1h8M5 12V4M2 7l3-3 3 3" {...line} color="var(--wait)" />;
    case "attempt":
      return <g><path d={`M${x} 4v20`} stroke="var(--text)" strokeWidth="1" /><text x={x + 2} y={8} fontSize="9" fill="var(--text)">{mark.text}</text></g>;
    case "detached":
      return <path transform={`translate(${start - 8} 14)`} d="M0 0q2-4 3 0t3 0" {...line} color="var(--text-2)" />;
    case "inferred":
      return <text x={x + 3} y={18} fontSize="11" fill="var(--text-2)">≈</text>;
  }
}

export const StepBars = memo(function StepBars({ step, drawn, scale, path }: { step: Step; drawn: Drawn; scale: Scale; path: Stretch[] | null }) {
  const clamp = (x: number) => Math.min(scale.width + 40, Math.max(-40, x));
  const start = clamp(xOf(scale, step.created));
  return (
    <svg aria-hidden width={scale.width} height="28" className={`c-${endLook(step)}`}>
      {path?.map((stretch) => {
        const d = `M${clamp(xOf(scale, stretch.from))} 24.5H${Math.max(clamp(xOf(scale, stretch.to)), clamp(xOf(scale, stretch.from)) + LEAST)}`;
        return <g key={stretch.from}><path d={d} className="b-halo" /><path d={d} className="b-path" /></g>;
      })}
      {drawn.bars.map((bar, index) => {
        const x = clamp(xOf(scale, bar.from));
        const end = clamp(xOf(scale, bar.to));
        return end < -30 || x > scale.width + 30 ? null : <BarShape key={index} bar={bar} step={step} x={x} end={Math.max(end, x + LEAST)} />;
      })}
      {drawn.marks.map((mark, index) => {
        const x = xOf(scale, mark.at);
        return x < -30 || x > scale.width + 30 ? null : <MarkShape key={`m${index}`} mark={mark} x={x} start={start} />;
      })}
    </svg>
  );
});

const SHADES = { fail: "var(--fail)", wait: "var(--wait)", run: "var(--run)", ok: "color-mix(in srgb, var(--ok) 72%, var(--surface))", neutral: "color-mix(in srgb, var(--neutral) 60%, var(--surface))" };

/** What a group did: how much went on at once, and where the worst of it was. */
export const GroupBars = memo(function GroupBars({ found, width }: { found: (Bucket | null)[]; width: number }) {
  const most = found.reduce((max, bucket) => Math.max(max, bucket?.active ?? 0), 1);
  const each = width / found.length;
  const paths = new Map<string, string>();
  for (const [at, bucket] of found.entries()) {
    if (!bucket) continue;
    const high = bucket.worst === "fail" ? Math.max(5, (bucket.active / most) * 16) : Math.max(2, (bucket.active / most) * 16);
    const d = `M${(at * each).toFixed(1)} ${(22 - high).toFixed(1)}h${Math.max(each, bucket.worst === "fail" ? 3 : each).toFixed(1)}v${high.toFixed(1)}h-${Math.max(each, bucket.worst === "fail" ? 3 : each).toFixed(1)}z`;
    paths.set(bucket.worst, (paths.get(bucket.worst) ?? "") + d);
  }
  return (
    <svg aria-hidden width={width} height="28">
      {(["neutral", "ok", "run", "wait", "fail"] as const).map((worst) => paths.has(worst) && <path key={worst} d={paths.get(worst)} fill={SHADES[worst]} />)}
    </svg>
  );
});
