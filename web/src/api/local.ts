// A route whose shape is not in openapi.json yet: read with a local type.
// local type: this file goes when the document has the routes.
import { useQuery as useCached } from "@tanstack/react-query";
import { addressOf, send } from "./client";
import type { Problem } from "./problem";
import { keyOf } from "./queries";

type Options = { enabled?: boolean; keep?: boolean; staleTime?: number; refetchInterval?: number };

export async function getLocal<T>(template: string, ask: { path?: object; query?: object; signal?: AbortSignal } = {}): Promise<T> {
  return (await (await send(addressOf(template, ask), { headers: { accept: "application/json" }, signal: ask.signal })).json()) as T;
}

export function useLocal<T>(template: string, ask: { path?: object; query?: object } = {}, options: Options = {}) {
  return useCached<T, Problem>({
    queryKey: keyOf(template, ask),
    queryFn: ({ signal }) => getLocal<T>(template, { ...ask, signal }),
    enabled: options.enabled,
    placeholderData: options.keep ? (before) => before : undefined,
    staleTime: options.staleTime,
    refetchInterval: options.refetchInterval,
  });
}
