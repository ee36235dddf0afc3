// Reads the fleet and keeps it fresh: what the stream tells is refetched at most four times a
// second, and ages of evidence every five seconds, because beats are no events.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import { addressOf, send } from "@/api/client";
import type { Problem } from "@/api/problem";
import { queries } from "@/api/queries";
import { type LiveFrame, type PlaneEvent, useLive } from "@/live/stream";

/** How often evidence is asked for again while somebody looks. */
export const EVIDENCE_MS = 5_000;
const COALESCE_MS = 250;

/** Asks again what begins with one of the routes, when the stream tells something about it. */
export function useStale(topics: string[], routes: string[], about: (event: PlaneEvent) => boolean): void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const key = routes.join(" ");
  useEffect(() => () => clearTimeout(timer.current), []);
  const heard = useCallback(
    (frame: LiveFrame) => {
      if (frame.type === "event" && !about(frame.event)) return;
      timer.current ??= setTimeout(() => {
        timer.current = undefined;
        const wanted = key.split(" ");
        void queries.invalidateQueries({
          predicate: ({ queryKey }) => wanted.some((route) => String(queryKey[0]).startsWith(route)),
        });
      }, COALESCE_MS);
    },
    [about, key],
  );
  useLive(topics, heard);
}

/** Whether an event is about machines, workers or placements. */
export const aboutFleet = (event: PlaneEvent) => /^(node|worker|fleet|placement|drift|plane)\./.test(event.kind);

/** A list that the plane gives page by page. */
export function usePages<Page extends { next_cursor?: string | null }>(
  route: string,
  query: Record<string, string | number | boolean | undefined>,
  options: { enabled?: boolean; refetchInterval?: number } = {},
) {
  return useInfiniteQuery<Page, Problem, { pages: Page[] }, readonly unknown[], string>({
    queryKey: [route, "pages", query],
    queryFn: async ({ pageParam, signal }) => {
      const answer = await send(addressOf(route, { query: { ...query, cursor: pageParam } }), {
        headers: { accept: "application/json" },
        signal,
      });
      return (await answer.json()) as Page;
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    enabled: options.enabled,
    refetchInterval: options.refetchInterval,
    placeholderData: (before) => before,
  });
}
