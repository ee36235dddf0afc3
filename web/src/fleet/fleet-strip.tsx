// The fleet's past day: how many nodes were in which state, bucket by bucket, as the plane summed it.
import { useState } from "react";
import { useGet } from "@/api/queries";
import { planeNow } from "@/live/clock";
import { colourOf, lookOf } from "@/look/words";
import { ErrorPanel } from "@/parts/says";
import { Time } from "@/parts/values";
import { statesOf } from "./map";

const DAY_MS = 86_400_000;

export function FleetStrip() {
  const [from] = useState(() => new Date(planeNow() - DAY_MS).toISOString());
  const past = useGet("/api/v1/fleet/history", { query: { from, buckets: 96 } }, { refetchInterval: 60_000, staleTime: 60_000 });
  if (past.error && !past.data) return <ErrorPanel error={past.error} what="the history" retry={() => void past.refetch()} />;
  const buckets = past.data?.buckets;
  const first = buckets?.[0];
  if (!buckets || !first) return null;
  const most = Math.max(1, ...buckets.map((bucket) => Object.values(bucket.states ?? {}).reduce((sum, n) => sum + n, 0)));
  return (
    <figure className="flex flex-col gap-1">
      <figcaption className="text-xs text-text-3">24 h, up to {most} nodes: what was not online is drawn from above</figcaption>
      <div aria-hidden className="flex items-stretch gap-px" style={{ height: 32 }}>
        {buckets.map((bucket) => {
          const states = bucket.states ? statesOf(bucket.states) : null;
          const said = states?.map(([word, n]) => `${n} ${word}`).join(", ") ?? (bucket.plane_down ? "the plane was down" : (bucket.states_unknown ?? "not known"));
          return (
            <span key={bucket.from} title={`${said} · ${bucket.from}`} className={`painted flex min-w-[2px] flex-1 flex-col ${states ? "" : "hatched border border-border"}`}>
              {states?.map(([word, n]) => {
                const { colour } = lookOf(word);
                const away = word === "unreachable" || word === "connecting";
                return (
                  <span key={word} className={away ? "hatched border border-border" : undefined}
                    style={{ flexGrow: n, flexBasis: 0, minHeight: 2, background: away ? undefined : colour === "text" ? "var(--border)" : colourOf(colour) }} />
                );
              })}
            </span>
          );
        })}
      </div>
      <div aria-hidden className="flex justify-between text-xs text-text-3"><Time at={first.from} /><span>now</span></div>
    </figure>
  );
}
