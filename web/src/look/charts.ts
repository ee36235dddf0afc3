// The numbers behind the charts: buckets of durations, paths of sparklines, and the sentence that
// says the same to who does not see them. Pure.
import { count, duration } from "./format";

/** The stretches of a series that are known, as SVG paths; what is unknown is a gap. */
export function sparkPaths(values: readonly (number | null)[], width: number, height: number): { lines: string[]; gaps: { x: number; width: number }[]; top: number } {
  const known = values.filter((value): value is number => value !== null);
  const top = Math.max(1, ...known);
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const x = (index: number) => Math.round(index * step * 10) / 10;
  const y = (value: number) => Math.round((height - 1 - (value / top) * (height - 2)) * 10) / 10;
  const lines: string[] = [];
  const gaps: { x: number; width: number }[] = [];
  let line = "";
  for (const [index, value] of values.entries()) {
    if (value === null) {
      if (line) lines.push(line);
      line = "";
      const last = gaps.at(-1);
      if (last && Math.abs(last.x + last.width - x(index)) < 0.2) last.width += step;
      else gaps.push({ x: x(index), width: step });
    } else line += line ? `L${x(index)} ${y(value)}` : `M${x(index)} ${y(value)}`;
  }
  if (line) lines.push(line);
  return { lines, gaps, top };
}

/** `38 a minute now, between 0 and 52, 3 of 60 unknown`. */
export function sparkSentence(values: readonly (number | null)[], unit: string): string {
  const known = values.filter((value): value is number => value !== null);
  if (known.length === 0) return `${unit}: nothing is known`;
  const last = values.at(-1);
  const missing = values.length - known.length;
  return `${unit}: ${last === null || last === undefined ? "unknown now" : `${count(last)} now`}, between ${count(Math.min(...known))} and ${count(Math.max(...known))}${missing > 0 ? `, ${missing} of ${values.length} unknown` : ""}`;
}

export type Bucket = { from: number; to: number; count: number; failed: number };
export const BUCKETS = 24;

/** Durations in logarithmic buckets; ends are where the shortest and the longest are. */
export function logBuckets(durations: readonly { ms: number; failed?: boolean }[], buckets = BUCKETS): Bucket[] {
  if (durations.length === 0) return [];
  const all = durations.map((each) => Math.max(1, each.ms));
  const low = Math.log(Math.min(...all));
  const high = Math.max(low + 0.001, Math.log(Math.max(...all)));
  const edge = (index: number) => Math.exp(low + ((high - low) * index) / buckets);
  const made = Array.from({ length: buckets }, (_, index): Bucket => ({ from: edge(index), to: edge(index + 1), count: 0, failed: 0 }));
  for (const each of durations) {
    const at = Math.min(buckets - 1, Math.floor(((Math.log(Math.max(1, each.ms)) - low) / (high - low)) * buckets));
    const bucket = made[at];
    if (!bucket) continue;
    bucket.count += 1;
    if (each.failed) bucket.failed += 1;
  }
  return made;
}

/** The nearest-rank percentile: a value that occurred. */
export function percentile(sorted: readonly number[], share: number): number | undefined {
  return sorted.length === 0 ? undefined : sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

export function histogramSentence(durations: readonly { ms: number; failed?: boolean }[]): string {
  const sorted = durations.map((each) => each.ms).sort((a, b) => a - b);
  const failed = durations.filter((each) => each.failed).length;
  if (sorted.length === 0) return "no durations";
  return `${count(sorted.length)} durations, half under ${duration(percentile(sorted, 0.5))}, 95 % under ${duration(percentile(sorted, 0.95))}, longest ${duration(sorted.at(-1))}${failed > 0 ? `, ${count(failed)} failed` : ""}`;
}
