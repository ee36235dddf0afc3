// The audit log: who did what to what, newest first, filtered and paged by the plane.
import type { components } from "muster-openapi";
import { useInfiniteQuery } from "@tanstack/react-query";
import { addressOf, send } from "@/api/client";
import type { Problem } from "@/api/problem";
import { FilterBar, type Filter } from "@/parts/filters";
import { Plain } from "@/parts/plain";
import { ErrorPanel, Skeleton } from "@/parts/says";
import { Age, Id } from "@/parts/values";
import { TimeRange, useRange } from "@/parts/range";
import { useSearch } from "@/router";

type AuditPage = components["schemas"]["AuditPage"];

const FILTERS: Filter[] = [
  { key: "action", kind: "text", name: "action", inline: true, hint: "key, node.drained …", suggestions: ["key", "enrolment", "node", "worker", "hold", "execution", "approval", "webhook", "session"] },
  { key: "actor", kind: "text", name: "by", inline: true, hint: "who" },
  { key: "object", kind: "text", name: "on", inline: true, hint: "an id" },
];

export default function Audit() {
  const search = useSearch();
  const range = useRange("all");
  const query = {
    action: search.get("action") ?? undefined, actor: search.get("actor") ?? undefined, object: search.get("object") ?? undefined,
    since: range.since, until: range.until,
  };
  const pages = useInfiniteQuery<AuditPage, Problem, { pages: AuditPage[] }, readonly unknown[], string>({
    queryKey: ["/api/v1/audit", "pages", query],
    queryFn: async ({ pageParam, signal }) => {
      const answer = await send(addressOf("/api/v1/audit", { query: { ...query, limit: 100, cursor: pageParam } }), { headers: { accept: "application/json" }, signal });
      return (await answer.json()) as AuditPage;
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    placeholderData: (before) => before,
  });
  const lines = pages.data?.pages.flatMap((page) => page.lines) ?? [];
  return (
    <div className="flex flex-col gap-2">
      <FilterBar filters={FILTERS}><TimeRange fallback="all" /></FilterBar>
      {pages.isPending && <Skeleton what="the audit log" />}
      {pages.error && lines.length === 0 && <ErrorPanel error={pages.error} what="the audit log" retry={() => void pages.refetch()} />}
      {pages.data && lines.length === 0 && <p className="text-text-2">Nothing was done that matches.</p>}
      <div className="overflow-x-auto"><ol>
        {lines.map((line) => (
          <li key={line.n} className="flex flex-wrap items-baseline gap-x-3 border-t border-border py-1 lg:grid lg:grid-cols-[90px_120px_170px_minmax(0,1fr)]">
            <span className="text-text-3"><Age at={line.at} /></span>
            <span className="truncate" title={line.principal}>{line.principal}</span>
            <code>{line.action}</code>
            <span className="min-w-0 wrap-anywhere max-lg:basis-full"><Id id={line.object} /> <span className="text-text-2"><Plain text={line.detail} /></span></span>
          </li>
        ))}
      </ol></div>
      {pages.hasNextPage && <button type="button" className="button self-start" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>Older</button>}
    </div>
  );
}
