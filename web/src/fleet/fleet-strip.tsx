// The fleet's past day: how many nodes were in which state, bucket by bucket, as the plane summed it.
import { useQuery } from "@tanstack/react-query";
import { addressOf, send } from "@/api/client";
import { Problem } from "@/api/problem";
import { planeNow } from "@/live/clock";
import { colourOf, lookOf } from "@/look/words";
import { Time } from "@/parts/values";
import { statesOf } from "./map";

// A local type until the document has it.
type FleetPast = { buckets: { from: string; to: string; states: Record<string, number> | null; plane_down: boolean }[] };

const DAY_MS = 86_400_000;
const ROUTE = "/api/v1/fleet/history";

export function FleetStrip() {
  const past = useQuery<FleetPast | null, Problem>({
    queryKey: [ROUTE],
    queryFn: async ({ signal }) => {
      const from = new Date(planeNow() - DAY_MS).toISOString();
      try {
        const answer = await send(addressOf(ROUTE, { query: { from, buckets: 96 } }), { headers: { accept: "application/json" }, signal });
        return (await answer.json()) as FleetPast;
      } catch (error) {
        if (Problem.of(error).notFound || Problem.of(error).status === 501) return null;
        throw error;
      }
    },
    staleTime: 60_000,
  });
  const buckets = past.data?.buckets;
  const first = buckets?.[0];
  if (!buckets || !first) return null;
  const most = Math.max(1, ...buckets.map((bucket) => Object.values(bucket.states ?? {}).reduce((sum, n) => sum + n, 0)));
  return (
    <figure className="flex flex-col gap-1">
      <figcaption className="text-xs text-text-3">24 h, up to {most} nodes: what was not online is drawn from above</figcaption>
      <div aria-hidden className="flex items-stretch gap-px" style={{ height: 32 }}>
        {buckets.map((bucket) => {
          const states = bucket.plane_down || !bucket.states ? null : statesOf(bucket.states);
          const said = states?.map(([word, n]) => `${n} ${word}`).join(", ") ?? (bucket.plane_down ? "the plane was down" : "not known");
          return (
            <span key={bucket.from} title={`${said} · ${bucket.from}`} className={`flex min-w-[2px] flex-1 flex-col ${states ? "" : "hatched border border-border"}`}>
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
