// The cache of what the plane said. One client for the page; the stream patches or marks stale
// what is in it. A failed refetch keeps the old data, so that a page shows "as of", not nothing.
import { QueryCache, QueryClient, keepPreviousData, useQuery as useCached } from "@tanstack/react-query";
import { type AnswerOf, type Ask, type Routes, get } from "./client";
import { Problem } from "./problem";

/** Under which who the reader is is kept. */
export const SESSION_KEY = ["/api/v1/session"] as const;

export const queries = new QueryClient({
  // Refused: the reader is no longer who the page thinks. What they may is asked again, and the
  // page asks for a key where it is needed.
  queryCache: new QueryCache({
    onError: (error, query) => {
      if (Problem.of(error).needsKey && query.queryKey[0] !== SESSION_KEY[0]) void queries.invalidateQueries({ queryKey: SESSION_KEY });
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 10_000,
      gcTime: 5 * 60_000,
      refetchOnWindowFocus: false,
      // The stream tells when the plane is back; a refusal does not get better by asking again.
      retry: (count, error) => Problem.of(error).offline && count < 2,
      networkMode: "always",
    },
  },
});

/** The key under which an answer is kept. */
export const keyOf = (template: string, ask: { path?: unknown; query?: unknown } = {}) =>
  [template, ask.path ?? null, ask.query ?? null] as const;

/**
 * What a route says, kept and refreshed. `data` stays while a refetch fails: `error` and
 * `dataUpdatedAt` say how old it is. Mark it stale from the stream with `queries.invalidateQueries`.
 */
export function useGet<P extends Routes<"get">>(
  template: P,
  ask: Omit<Ask<P, "get">, "signal"> = {},
  options: { enabled?: boolean; keep?: boolean; refetchInterval?: number | false; staleTime?: number } = {},
) {
  return useCached<AnswerOf<P, "get">, Problem>({
    queryKey: keyOf(template as string, ask),
    queryFn: ({ signal }) => get(template, { ...ask, signal } as Ask<P, "get">),
    enabled: options.enabled,
    placeholderData: options.keep ? keepPreviousData : undefined,
    refetchInterval: options.refetchInterval,
    staleTime: options.staleTime,
  });
}
