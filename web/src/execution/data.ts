// What the plane knows of one execution, kept fresh while it is on screen: one request for the
// evidence and the row, others when their tab is opened. Payloads are read elsewhere, by range.
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import { addressOf, send } from "@/api/client";
import type { Problem } from "@/api/problem";
import { type LiveFrame, useLive } from "@/live/stream";
import { useWhy } from "@/parts/why";
import { useGet } from "@/api/queries";
import { touched } from "./ask";
import type { AttemptList, ExecutionEvents, ExecutionItem, NoteList } from "./shapes";

/** Answers that came in a burst are asked again once. */
const COALESCE_MS = 250;

/** The row and the evidence. The row has no payload, however large its result is. */
export function useExecution(id: string) {
  const why = useWhy(id, "execution");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), [id]);
  useLive(
    [`execution:${id}`],
    useCallback(
      (frame: LiveFrame) => {
        if (frame.type === "event" && frame.event.execution_id !== id) return;
        if (frame.type === "changed") return;
        timer.current ??= setTimeout(() => {
          timer.current = undefined;
          touched(id);
        }, COALESCE_MS);
      },
      [id],
    ),
  );
  // A plane whose evidence has no row in it is asked for the row alone.
  const alone = useGet("/api/v1/executions/{id}", { path: { id } }, { enabled: why.data !== undefined && !why.data.execution });
  const execution = why.data?.execution ?? (alone.data as ExecutionItem | undefined);
  return { ...why, error: why.error ?? alone.error, execution };
}

async function read<T>(template: string, id: string, signal: AbortSignal, query?: Record<string, unknown>): Promise<T> {
  const answer = await send(addressOf(template, { path: { id }, query }), { headers: { accept: "application/json" }, signal });
  return (await answer.json()) as T;
}

export const useAttempts = (id: string) =>
  useQuery<AttemptList, Problem>({
    queryKey: ["attempts", id],
    queryFn: ({ signal }) => read<AttemptList>("/api/v1/executions/{id}/attempts", id, signal),
  });

export const useNotes = (id: string, open: boolean) =>
  useQuery<NoteList, Problem>({
    queryKey: ["notes", id],
    queryFn: ({ signal }) => read<NoteList>("/api/v1/executions/{id}/notes", id, signal),
    refetchInterval: open ? 3_000 : false,
  });

export const useEvents = (id: string) =>
  useQuery<ExecutionEvents, Problem>({
    queryKey: ["events", id],
    queryFn: ({ signal }) => read<ExecutionEvents>("/api/v1/executions/{id}/events", id, signal),
  });
