// A history as a strip: one cell for each span of time, in shape and colour of the state; spans in
// which the plane was down or nothing is known are hatched, not coloured. Its sentence says it all.
import { useMemo } from "react";
import { colourOf, lookOf } from "@/look/words";
import { span } from "@/look/format";
import { Time, msOf } from "@/parts/values";
import type { StateBucket } from "./shapes";

/** In how many spans each state was the worst, most first; what is not known is said as that. */
export function sharesOf(buckets: StateBucket[]): [state: string, spans: number][] {
  const sums = new Map<string, number>();
  for (const bucket of buckets) {
    const word = bucket.state ?? (bucket.plane_down ? "plane down" : "not known");
    sums.set(word, (sums.get(word) ?? 0) + 1);
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}

const HEIGHT: Record<string, number> = { text: 10, neutral: 10, wait: 14, fail: 18 };

/** `the worst of each 15 m: online in 90, down in 1, plane down in 5 of 96`: a span is not a time that it lasted. */
export function sharesSaid(buckets: StateBucket[]): string {
  const [first] = buckets;
  if (!first) return "";
  const each = (msOf(first.to) ?? 0) - (msOf(first.from) ?? 0);
  return `the worst of each ${span(each)}: ${sharesOf(buckets).map(([word, spans]) => `${word.replaceAll("_", " ")} in ${spans}`).join(", ")} of ${buckets.length}`;
}

export function Strip({ buckets, label }: { buckets: StateBucket[]; label: string }) {
  const said = useMemo(() => sharesSaid(buckets), [buckets]);
  const first = buckets[0];
  if (!first) return null;
  return (
    <figure className="flex flex-col gap-1">
      <figcaption className="flex flex-wrap gap-x-3 text-xs text-text-3"><span>{label}</span><span>{said}</span></figcaption>
      <div aria-hidden className="flex items-end gap-px" style={{ height: 18 }}>
        {buckets.map((bucket) => {
          const known = bucket.state !== null;
          const colour = known ? lookOf(bucket.state).colour : "neutral";
          const down = bucket.plane_down ? "the plane was down: not theirs" : undefined;
          const word = bucket.state === null ? (down ?? bucket.state_unknown ?? "not known") : down ? `${bucket.state}, for a part of it the plane was down` : bucket.state;
          const hollow = !known || bucket.state === "unreachable";
          return (
            <span key={bucket.from} title={`${word} · ${bucket.from}`} className={`painted min-w-[2px] flex-1 rounded-[1px] ${hollow ? "hatched border border-border" : ""}`}
              style={{ height: HEIGHT[colour] ?? 10, background: hollow ? undefined : colour === "text" ? "var(--line)" : colourOf(colour) }} />
          );
        })}
      </div>
      <div aria-hidden className="flex justify-between text-xs text-text-3"><Time at={first.from} /><span>now</span></div>
    </figure>
  );
}
