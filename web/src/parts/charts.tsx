// Charts as own SVG: no smoothing, no second axes. Each says its numbers in a sentence and can be
// turned into a table. What is unknown is a hatched gap, never a zero.
import { type ReactNode, useId, useState } from "react";
import { histogramSentence, logBuckets, percentile, sparkPaths, sparkSentence } from "@/look/charts";
import { count, duration } from "@/look/format";
import { Link } from "@/router";

/** The hatch of what is unknown; an id of its own in each chart. */
function Hatch({ id }: { id: string }) {
  return (
    <pattern id={id} width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <path d="M0 0v4" stroke="var(--line)" strokeWidth="1" />
    </pattern>
  );
}

const WIDTH = 96;
const HEIGHT = 20;

/** 96 × 20, 60 buckets; the last value is written beside it by whoever shows it. */
export function Sparkline({ values, unit, colour = "var(--text-2)", width = WIDTH }: { values: readonly (number | null)[]; unit: string; colour?: string; width?: number }) {
  const hatch = useId();
  const { lines, gaps } = sparkPaths(values, width, HEIGHT);
  const says = sparkSentence(values, unit);
  return (
    <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={says} className="shrink-0">
      <title>{says}</title>
      <defs><Hatch id={hatch} /></defs>
      {gaps.map((gap) => <rect key={gap.x} x={gap.x} y="0" width={Math.min(gap.width, width - gap.x)} height={HEIGHT} fill={`url(#${hatch})`} />)}
      <path d={`M0 ${HEIGHT - 0.5}H${width}`} stroke="var(--border)" />
      {lines.map((line) => <path key={line} d={line} fill="none" stroke={colour} strokeWidth="1.5" strokeLinecap="round" strokeLinejoin="round" />)}
    </svg>
  );
}

/** A chart with its sentence, and the same as a table. */
export function Charted({ sentence, table, children }: { sentence: string; table: ReactNode; children: ReactNode }) {
  const [shown, setShown] = useState(false);
  return (
    <figure className="m-0">
      {shown ? table : children}
      <figcaption className="mt-1 flex flex-wrap gap-x-3 text-xs text-text-3">
        <span>{sentence}</span>
        <button type="button" className="text-accent hover:underline" aria-pressed={shown} onClick={() => setShown(!shown)}>{shown ? "as a chart" : "as a table"}</button>
      </figcaption>
    </figure>
  );
}

const HIST = { width: 480, height: 96, base: 80 };

/** How long things took: logarithmic buckets, failed ones at the base, p50 and p95 as lines. */
export function Histogram({ durations }: { durations: readonly { ms: number; failed?: boolean }[] }) {
  const buckets = logBuckets(durations);
  const sorted = durations.map((each) => each.ms).sort((a, b) => a - b);
  const sentence = histogramSentence(durations);
  if (buckets.length === 0) return <p className="text-text-3">Nothing has ended yet, so there are no durations.</p>;
  const top = Math.max(...buckets.map((bucket) => bucket.count));
  const low = Math.log(buckets[0]?.from ?? 1);
  const high = Math.log(buckets.at(-1)?.to ?? 2);
  const x = (ms: number) => ((Math.log(Math.max(1, ms)) - low) / (high - low)) * HIST.width;
  const bar = HIST.width / buckets.length;
  const marks = [["p50", percentile(sorted, 0.5)], ["p95", percentile(sorted, 0.95)]] as const;
  return (
    <Charted
      sentence={sentence}
      table={
        <table className="table"><thead><tr><th>from</th><th>to</th><th className="text-right">n</th><th className="text-right">failed</th></tr></thead>
          <tbody>{buckets.filter((bucket) => bucket.count > 0).map((bucket) => (
            <tr key={bucket.from}><td>{duration(bucket.from)}</td><td>{duration(bucket.to)}</td><td className="text-right">{count(bucket.count)}</td><td className="text-right">{count(bucket.failed)}</td></tr>
          ))}</tbody></table>
      }
    >
      <svg viewBox={`0 -14 ${HIST.width} ${HIST.height + 14}`} className="w-full max-w-[640px]" role="img" aria-label={sentence}>
        {buckets.map((bucket, index) => {
          const height = (bucket.count / top) * HIST.base;
          const failed = (bucket.failed / top) * HIST.base;
          return (
            <g key={bucket.from}>
              <title>{`${duration(bucket.from)} to ${duration(bucket.to)}: ${count(bucket.count)}, ${count(bucket.failed)} failed`}</title>
              <rect x={index * bar + 1} y={HIST.base - height} width={bar - 2} height={height - failed} fill="var(--neutral)" />
              <rect x={index * bar + 1} y={HIST.base - failed} width={bar - 2} height={failed} fill="var(--fail)" />
            </g>
          );
        })}
        <path d={`M0 ${HIST.base + 0.5}H${HIST.width}`} stroke="var(--line)" />
        {marks.map(([name, at], index) => at !== undefined && (
          <g key={name}>
            <path d={`M${x(at)} ${index === 0 ? 0 : -2}V${HIST.base}`} stroke="var(--text)" strokeDasharray="3 3" />
            <text x={Math.min(x(at) + 4, HIST.width - 84)} y={index === 0 ? 8 : -4} fontSize="11" fill="var(--text)">{name} {duration(at)}</text>
          </g>
        ))}
        <text x="0" y={HIST.height - 2} fontSize="11" fill="var(--text-3)">{duration(buckets[0]?.from)}</text>
        <text x={HIST.width} y={HIST.height - 2} fontSize="11" fill="var(--text-3)" textAnchor="end">{duration(buckets.at(-1)?.to)}</text>
      </svg>
    </Charted>
  );
}

export type BarItem = { id: string; name: ReactNode; value: number; text?: ReactNode; to?: string; colour?: string };

/** Bars by size, the value as text; each is a link to what it counts. */
export function Bars({ items, label }: { items: readonly BarItem[]; label: string }) {
  const sorted = [...items].sort((a, b) => b.value - a.value);
  const top = Math.max(1, ...sorted.map((item) => item.value));
  return (
    <ul aria-label={label} className="bars">
      {sorted.map((item) => {
        const inside = (
          <>
            <span className="truncate">{item.name}</span>
            <span aria-hidden className="bar-track"><span className="painted" style={{ width: `${Math.max(1, (item.value / top) * 100)}%`, background: item.colour ?? "var(--neutral)" }} /></span>
            <span className="whitespace-nowrap text-right">{item.text ?? count(item.value)}</span>
          </>
        );
        return <li key={item.id}>{item.to ? <Link to={item.to} className="bar">{inside}</Link> : <span className="bar">{inside}</span>}</li>;
      })}
    </ul>
  );
}

export type Part = { state: string; count: number; colour: string; /** What is well is thin: it takes no weight. */ pattern?: "solid" | "outline" | "thin" | "double" };

/** How each state is drawn in a split bar, in the same language as the bars of a run. */
export const patternOf = (state: string): Part["pattern"] => (state === "queued" ? "outline" : state === "succeeded" ? "thin" : state === "waiting" ? "double" : "solid");

/** A bar split by states, with its parts in words for who does not see it. Fixed in width. */
export function SplitBar({ parts, width = 72, label }: { parts: readonly Part[]; width?: number; label: string }) {
  const total = parts.reduce((sum, part) => sum + part.count, 0);
  if (total === 0) return null;
  let x = 0;
  return (
    <svg width={width} height="10" viewBox={`0 0 ${width} 10`} role="img" aria-label={label} className="shrink-0">
      <title>{label}</title>
      {parts.filter((part) => part.count > 0).map((part) => {
        // A part that is there is seen, however small its share.
        const wide = Math.max(2, (part.count / total) * (width - 2 * parts.length));
        const at = x;
        x += wide + 1;
        if (part.pattern === "thin") return <rect key={part.state} x={at} y="3" width={wide} height="4" fill={part.colour} />;
        if (part.pattern === "double") return <path key={part.state} d={`M${at} 1.75h${wide}M${at} 8.25h${wide}`} stroke={part.colour} strokeWidth="3.5" />;
        return part.pattern === "outline"
          ? <rect key={part.state} x={at + 0.5} y="0.5" width={Math.max(1, wide - 1)} height="9" fill="none" stroke={part.colour} strokeDasharray="2 1.5" />
          : <rect key={part.state} x={at} y="0" width={wide} height="10" fill={part.colour} />;
      })}
    </svg>
  );
}
