// Reads a list page by page and keeps it live: events say which rows changed, their pages are asked
// for again, at most twice a second and never more than the plane answers in that time. The list
// outlives its page for a while, so that Back shows it as it was.
import { useCallback, useEffect, useMemo, useReducer, useRef } from "react";
import { Problem } from "@/api/problem";
import { planeNow } from "@/live/clock";
import { type LiveFrame, type PlaneEvent, useLive } from "@/live/stream";
import { EMPTY, type LiveList, type Page, begun, concerned, extended, refreshed, shown } from "./live-list";

type Source<Row> = {
  /** Names the query: another key is another list. */
  key: string;
  /** Asks the plane for one page. */
  read(cursor: string | undefined, signal: AbortSignal): Promise<Page<Row>>;
  idOf(row: Row): string;
  /** The row that an event is about. */
  about(event: PlaneEvent): string | undefined;
  topic: string;
  /** How often it is asked for again at most; half a second when left out. */
  everyMs?: number;
};

type Kept = { list: LiveList<unknown>; at: number };
/** The last few lists, newest last. */
const kept = new Map<string, Kept>();
const KEPT_MOST = 6;
const REFRESH_MS = 500;
/** Pages asked for again at once: the first, and two that show what changed. */
const PAGES_AT_ONCE = 3;

type State<Row> = { list: LiveList<Row>; at: number; pending: boolean; error: Problem | null; growing: boolean };

export function useLiveList<Row>(source: Source<Row>) {
  const latest = useRef(source);
  latest.current = source;
  const { key } = source;
  const state = useRef<State<Row> & { key: string }>(undefined);
  const [, render] = useReducer((count: number) => count + 1, 0);
  if (state.current?.key !== key) {
    const found = kept.get(key);
    state.current = { key, list: (found?.list as LiveList<Row> | undefined) ?? (EMPTY as LiveList<Row>), at: found?.at ?? 0, pending: found === undefined, error: null, growing: false };
  }
  const put = useCallback((forKey: string, change: Partial<State<Row>>) => {
    if (state.current?.key !== forKey) return;
    state.current = { ...state.current, ...change };
    if (change.list) {
      kept.delete(forKey);
      kept.set(forKey, { list: change.list as LiveList<unknown>, at: state.current.at });
      const oldest = kept.keys().next().value;
      if (kept.size > KEPT_MOST && oldest !== undefined) kept.delete(oldest);
    }
    render();
  }, []);

  const stop = useRef<AbortController>(undefined);
  const begin = useCallback(async () => {
    const mine = latest.current;
    stop.current?.abort();
    const control = new AbortController();
    stop.current = control;
    try {
      const page = await mine.read(undefined, control.signal);
      put(mine.key, { list: begun(page, mine.idOf), at: planeNow(), pending: false, error: null });
    } catch (error) {
      if (!control.signal.aborted) put(mine.key, { pending: false, error: Problem.of(error) });
    }
  }, [put]);

  const changed = useRef(new Set<string>());
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const busy = useRef(false);
  const again = useCallback(async () => {
    timer.current = undefined;
    if (busy.current || !state.current) return;
    busy.current = true;
    const mine = latest.current;
    const ids = changed.current;
    changed.current = new Set();
    const asked = performance.now();
    try {
      const cursors = concerned(state.current.list, ids, PAGES_AT_ONCE);
      const pages = await Promise.all(cursors.map((cursor) => mine.read(cursor, new AbortController().signal)));
      if (state.current.key === mine.key) {
        let { list } = state.current;
        for (const [index, page] of pages.entries()) list = refreshed(list, cursors[index], page, mine.idOf);
        put(mine.key, { list, at: planeNow(), error: null });
      }
    } catch (error) {
      put(mine.key, { error: Problem.of(error) });
    } finally {
      busy.current = false;
      if (changed.current.size > 0) later(Math.max(mine.everyMs ?? REFRESH_MS, 3 * (performance.now() - asked)));
    }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `later` only sets the timer
  }, [put]);
  const later = (ms: number) => {
    timer.current ??= setTimeout(() => void again(), ms);
  };

  useEffect(() => {
    // A list that was kept is shown as it was; what is new since then waits behind the bar.
    if (state.current?.pending) void begin();
    else {
      changed.current.add("");
      later(0);
    }
    return () => {
      stop.current?.abort();
      clearTimeout(timer.current);
      timer.current = undefined;
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once for each list
  }, [key]);

  useLive([source.topic], useCallback((frame: LiveFrame) => {
    if (frame.type === "resync") changed.current.add("");
    else if (frame.type !== "event") return;
    else {
      const id = latest.current.about(frame.event);
      if (id === undefined) return;
      changed.current.add(id);
    }
    if (!busy.current) later(latest.current.everyMs ?? REFRESH_MS);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `later` only sets the timer
  }, []));

  const more = useCallback(async () => {
    const mine = latest.current;
    const now = state.current;
    const cursor = now?.list.pages.at(-1)?.next;
    if (!now || now.growing || cursor === undefined || now.error) return;
    put(mine.key, { growing: true });
    try {
      const page = await mine.read(cursor, new AbortController().signal);
      if (state.current) put(mine.key, { list: extended(state.current.list, cursor, page, mine.idOf), growing: false });
    } catch (error) {
      put(mine.key, { growing: false, error: Problem.of(error) });
    }
  }, [put]);

  const { list, pending, error, at } = state.current;
  const rows = useMemo(() => shown(list), [list]);
  return {
    rows, list, more: list.pages.at(-1)?.next === undefined ? undefined : () => void more(), begin: () => void begin(),
    query: { isPending: pending, error, dataUpdatedAt: at, refetch: () => void begin() },
  };
}
