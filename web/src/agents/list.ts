// The list of agents: pages of the plane's answer, in an order that is made once and then kept
// until the reader asks for a new one. Rows change in place; new agents wait.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { get } from "@/api/client";
import { Problem } from "@/api/problem";
import { queries } from "@/api/queries";
import { type LiveFrame, useLive } from "@/live/stream";
import { byNeed } from "./outlook";
import type { AgentLine } from "./shapes";

const PAGE = 500;
const COALESCE_MS = 500;

/** The order that stands, and what is not in it yet. */
export function inOrder(agents: readonly AgentLine[], order: readonly string[]): { shown: AgentLine[]; fresh: number } {
  const by = new Map(agents.map((agent) => [agent.id, agent]));
  const shown = order.flatMap((id) => by.get(id) ?? []);
  return { shown, fresh: agents.length - shown.length };
}

export type AgentFilter = { q?: string; state?: string };

export function useAgents(filter: AgentFilter) {
  const key = ["/api/v1/nodes", filter] as const;
  const pages = useInfiniteQuery({
    queryKey: key,
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => get("/api/v1/nodes", { query: { limit: PAGE, cursor: pageParam || undefined, ...filter }, signal }),
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    refetchInterval: 15_000,
  });
  const agents = useMemo(() => pages.data?.pages.flatMap((page) => page.nodes) ?? [], [pages.data]);

  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useLive(["agents", "queues"], useCallback((_: LiveFrame) => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void queries.invalidateQueries({ queryKey: ["/api/v1/nodes"] });
    }, COALESCE_MS);
  }, []));

  // Ordered once for each question and each page that was added; then fixed.
  const asked = JSON.stringify(filter);
  const [order, setOrder] = useState<{ asked: string; ids: string[]; pages: number }>({ asked: "", ids: [], pages: 0 });
  const many = pages.data?.pages.length ?? 0;
  useEffect(() => {
    if (!pages.data || pages.isPlaceholderData) return;
    setOrder((before) => {
      if (before.asked !== asked || before.pages === 0) return { asked, pages: many, ids: byNeed(agents).map(({ id }) => id) };
      if (before.pages >= many) return before;
      const known = new Set(before.ids);
      return { asked, pages: many, ids: [...before.ids, ...byNeed(agents.filter(({ id }) => !known.has(id))).map(({ id }) => id)] };
    });
  }, [asked, many, agents, pages.data, pages.isPlaceholderData]);
  const standing = order.asked === asked ? order.ids : [];
  const { shown, fresh } = useMemo(() => inOrder(agents, standing), [agents, standing]);
  const moved = useMemo(() => byNeed(shown).some((agent, index) => agent.id !== shown[index]?.id), [shown]);
  return {
    shown,
    fresh,
    /** Another order would stand now. */
    moved,
    reorder: useCallback(() => setOrder({ asked, pages: many, ids: byNeed(agents).map(({ id }) => id) }), [asked, many, agents]),
    first: pages.data?.pages[0],
    query: { isPending: pages.isPending, error: pages.error ? Problem.of(pages.error) : null, dataUpdatedAt: pages.dataUpdatedAt, refetch: pages.refetch },
    more: pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : undefined,
  };
}
