// Log lines of an execution, as they are loaded: page after page behind a number, and, while it
// runs and somebody looks, what came since. Keeps a bounded number of lines and counts the others.
import { useEffect, useRef, useState } from "react";
import { addressOf, send } from "@/api/client";
import { Problem } from "@/api/problem";
import { tokensOf } from "./json/tokens";
import type { LogEntry, LogPage } from "./shapes";

/** Lines of one answer. */
const PAGE = 2_000;
/** Lines that are kept; older ones are for downloading. */
export const KEPT = 5_000;
/** While it runs, so often. */
const AGAIN_MS = 1_000;

export type LogLine = Omit<LogEntry, "attributes"> & {
  /** As the agent wrote them, every digit. */
  attributes: string;
};

export type LogRow = { is: "line"; line: LogLine } | { is: "gap"; after: number; lines: number };

export type Logs = {
  rows: LogRow[];
  /** How many lines there are of every level. */
  total: number;
  dropped: number;
  /** Lines before the first one here. */
  earlier: number;
  loading: boolean;
  error?: Problem;
};

export const NOTHING: Logs = { rows: [], total: 0, dropped: 0, earlier: 0, loading: true };

/** Reads a page so that attributes stay text. */
export function readPage(text: string): Omit<LogPage, "entries"> & { lines: LogLine[] } {
  const page = JSON.parse(text) as LogPage;
  const tokens = tokensOf(text);
  const attributes = tokens.nodes.filter((node) => node.depth === 3 && text.slice(node.keyStart, node.keyEnd) === '"attributes"');
  const { entries, ...rest } = page;
  return {
    ...rest,
    lines: entries.map((entry, index) => {
      const node = attributes[index];
      return { ...entry, attributes: node ? text.slice(node.start, node.end) : "null" };
    }),
  };
}

/** Puts a page behind what is there. Gaps come where they are; the oldest rows leave when there are too many. */
export function withPage(before: Logs, page: ReturnType<typeof readPage>): Logs {
  const gaps = [...(page.gaps ?? [])].sort((a, b) => a.after - b.after);
  const known = new Set(before.rows.map((row) => (row.is === "gap" ? row.after : -1)));
  const rows = [...before.rows];
  let gap = 0;
  const takeGaps = (upTo: number) => {
    for (let next = gaps[gap]; next && next.after < upTo; next = gaps[gap]) {
      if (!known.has(next.after)) rows.push({ is: "gap", ...next });
      gap += 1;
    }
  };
  for (const line of page.lines) {
    takeGaps(line.seq);
    rows.push({ is: "line", line });
  }
  if (!page.has_more) takeGaps(Number.POSITIVE_INFINITY);
  const over = Math.max(0, rows.length - KEPT);
  const left = rows.slice(0, over).filter((row) => row.is === "line").length;
  return { rows: rows.slice(over), total: page.total, dropped: page.dropped, earlier: before.earlier + left, loading: page.has_more };
}

/** The lines of at least this level, and what comes while it is open. */
export function useLogs(id: string, level: string, open: boolean): Logs & { retry(): void } {
  const [logs, setLogs] = useState(NOTHING);
  const [round, setRound] = useState(0);
  const goesOn = useRef(open);
  goesOn.current = open;
  useEffect(() => {
    const stop = new AbortController();
    let after = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    setLogs(NOTHING);
    const next = async (last: boolean): Promise<void> => {
      try {
        const address = addressOf("/api/v1/executions/{id}/logs", { path: { id }, query: { after, limit: PAGE, level } });
        const answer = await send(address, { headers: { accept: "application/json" }, signal: stop.signal });
        const page = readPage(await answer.text());
        if (stop.signal.aborted) return;
        after = page.next_after;
        setLogs((before) => withPage(before, page));
        if (page.has_more) return await next(last);
        // One more look after the end: lines are written a moment after they are taken.
        if (goesOn.current || !last) timer = setTimeout(() => void look(!goesOn.current), AGAIN_MS);
      } catch (error) {
        if (stop.signal.aborted) return;
        setLogs((before) => ({ ...before, loading: false, error: Problem.of(error) }));
        if (Problem.of(error).offline) timer = setTimeout(() => void next(last), AGAIN_MS * 5);
      }
    };
    const look = async (last: boolean): Promise<void> => {
      if (document.hidden) timer = setTimeout(() => void look(last), AGAIN_MS);
      else await next(last);
    };
    void next(!goesOn.current);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, level, round]);
  return { ...logs, retry: () => setRound((before) => before + 1) };
}
