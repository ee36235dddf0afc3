// A history as a strip: one cell for each span of time, in shape and colour of the state; spans in
// which the plane was down or nothing is known are hatched, not coloured. Its sentence says it all.
import { useMemo } from "react";
import { colourOf, lookOf } from "@/look/words";
import { span } from "@/look/format";
import { Time, msOf } from "@/parts/values";
import type { StateBucket } from "./shapes";

/** How much of the time each state had, longest first; what is not known is said as that. */
export function sharesOf(buckets: StateBucket[]): [state: string, ms: number][] {
  const sums = new Map<string, number>();
  for (const bucket of buckets) {
    const word = bucket.state ?? (bucket.plane_down ? "plane down" : "not known");
    const length = (msOf(bucket.to) ?? 0) - (msOf(bucket.from) ?? 0);
    sums.set(word, (sums.get(word) ?? 0) + length);
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}

const HEIGHT: Record<string, number> = { text: 10, neutral: 10, wait: 14, fail: 18 };

export function Strip({ buckets, label }: { buckets: StateBucket[]; label: string }) {
  const said = useMemo(() => sharesOf(buckets).map(([word, ms]) => `${word} ${span(ms)}`).join(", "), [buckets]);
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
            <span key={bucket.from} title={`${word} · ${bucket.from}`} className={`min-w-[2px] flex-1 rounded-[1px] ${hollow ? "hatched border border-border" : ""}`}
              style={{ height: HEIGHT[colour] ?? 10, background: hollow ? undefined : colour === "text" ? "var(--line)" : colourOf(colour) }} />
          );
        })}
      </div>
      <div aria-hidden className="flex justify-between text-xs text-text-3"><Time at={first.from} /><span>now</span></div>
    </figure>
  );
}
