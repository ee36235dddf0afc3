// What happened to a node or a worker, newest first, page by page: each line with its evidence.
import { useInfiniteQuery } from "@tanstack/react-query";
import { addressOf, send } from "@/api/client";
import type { Problem } from "@/api/problem";
import { planeNow } from "@/live/clock";
import { shortId } from "@/look/format";
import { Link, path } from "@/router";
import { Plain } from "@/parts/plain";
import { ErrorPanel, Skeleton } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";
import { Age } from "@/parts/values";
import type { History as Page } from "./shapes";
import { Strip } from "./strip";

const DAY_MS = 86_400_000;

export function History({ of, id }: { of: "nodes" | "workers"; id: string }) {
  const route = `/api/v1/fleet/${of}/{id}/history`;
  const pages = useInfiniteQuery<Page, Problem, { pages: Page[] }, readonly unknown[], number>({
    queryKey: [route, id],
    queryFn: async ({ pageParam, signal }) => {
      const first = pageParam === 0 && of === "nodes" ? { buckets: 96, from: new Date(planeNow() - DAY_MS).toISOString() } : {};
      const query = { limit: 25, before: pageParam || undefined, ...first };
      const answer = await send(addressOf(route, { path: { id }, query }), { headers: { accept: "application/json" }, signal });
      return (await answer.json()) as Page;
    },
    initialPageParam: 0,
    getNextPageParam: (last) => last.next_before ?? undefined,
  });
  const lines = pages.data?.pages.flatMap((page) => page.history) ?? [];
  const buckets = pages.data?.pages[0]?.buckets;
  if (pages.isPending) return <Skeleton rows={3} what="the history" />;
  if (pages.error && lines.length === 0) return <ErrorPanel error={pages.error} what="the history" retry={() => void pages.refetch()} />;
  return (
    <section aria-labelledby={`history-${id}`} className="flex flex-col gap-2">
      <h2 id={`history-${id}`}>What happened</h2>
      {buckets && <Strip buckets={buckets} label="24 h" />}
      {lines.length === 0 && <p className="text-text-2">Nothing yet.</p>}
      <ol className="border-t border-border">
        {lines.map((line) => (
          <li key={`${line.seq} ${line.kind} ${line.worker ?? ""}`} className="flex flex-wrap gap-x-3 gap-y-1 border-b border-border py-1 sm:grid sm:grid-cols-[90px_150px_1fr]">
            <span className="text-text-3"><Age at={line.at} /></span>
            <span>{line.to && /state/.test(line.kind) ? <StateMark state={line.to} kind={line.kind.startsWith("worker") ? "worker" : undefined} evidence={line.from ? `was ${line.from}` : undefined} /> : <span className="text-text-2">{line.kind.replaceAll(/[._]/g, " ")}</span>}</span>
            <span className="w-full min-w-0 break-words sm:w-auto">
              {of === "nodes" && line.worker && <Link to={path("fleet", "workers", line.worker)} className="font-mono text-xs underline underline-offset-2" title={line.worker}>{shortId(line.worker)}</Link>} <Plain text={line.evidence} />
            </span>
          </li>
        ))}
      </ol>
      {pages.hasNextPage && <button type="button" className="button self-start" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>Older</button>}
    </section>
  );
}
