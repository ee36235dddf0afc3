// The steps of the run that is on screen: read by windows, then kept up to date by asking for what
// changed whenever the stream says that something did. Never more often than four times a second,
// and never more than one request at a time. Knows nothing of drawing.
import { useCallback, useEffect, useMemo, useSyncExternalStore } from "react";
import { get } from "@/api/client";
import { Problem } from "@/api/problem";
import { isOpen } from "@/execution/shapes";
import { type LiveFrame, useLive } from "@/live/stream";
import type { StepColumns } from "./columns";
import { EMPTY, type Forest, patched } from "./forest";

/** More steps than these come as groups, not one by one. */
export const STEPS_MAX = 20_000;
const WINDOW = 2_000;
const PAUSE_MS = 260;

export type StepsSnapshot = {
  forest: Forest;
  /** The run's state at the same moment; `null` while nothing was read. */
  state: string | null;
  total: number | null;
  /** All windows are there. */
  complete: boolean;
  /** There are too many to read one by one. */
  tooMany: boolean;
  error: Problem | null;
  /** When (plane time) this was true. */
  asOf: number | null;
};

const NOTHING: StepsSnapshot = { forest: EMPTY, state: null, total: null, complete: false, tooMany: false, error: null, asOf: null };

type Ask = { after?: string; after_position?: string };

async function ask(run: string, query: Ask, signal: AbortSignal): Promise<StepColumns> {
  const answer = await get("/api/v1/runs/{run}/steps", { path: { run }, query: { view: "columns", limit: WINDOW, ...query }, signal });
  if ("columns" in answer) return answer;
  throw new Problem("not_supported", "the plane sends no columns", 501);
}

export class StepsStore {
  private snapshot: StepsSnapshot = NOTHING;
  private readonly listeners = new Set<() => void>();
  private readonly stop = new AbortController();
  private position = "";
  private busy = false;
  private dirty = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly run: string) {}

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  readonly now = () => this.snapshot;

  /** Reads all of them, window after window; what is there is shown meanwhile. */
  async load(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    this.dirty = false;
    try {
      let after: string | undefined;
      let forest = EMPTY;
      do {
        const answer = await ask(this.run, after ? { after } : {}, this.stop.signal);
        // The first window is the oldest: what changes while the others come is asked for afterwards.
        if (!after) this.position = answer.position;
        const tooMany = answer.total > STEPS_MAX;
        forest = patched(forest, answer).forest;
        // What follows the last step of a run that is over is a window without any.
        const whole = !isOpen(answer.state) && forest.steps.length >= answer.total;
        after = tooMany || whole ? undefined : answer.next;
        // The first window is drawn at once, then all of them: what lies between costs more than it
        // shows. A reload keeps what is drawn until all of it is there again.
        if (!after || forest.steps.length <= WINDOW && !this.snapshot.complete) this.tell(answer, forest, { complete: !after, tooMany });
      } while (after);
    } catch (error) {
      this.failed(error);
    } finally {
      this.busy = false;
      if (this.dirty) this.touch();
    }
  }

  /** Something changed: asks for what did, soon, once. */
  readonly touch = () => {
    this.dirty = true;
    if (this.busy || this.timer !== undefined || this.stop.signal.aborted) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.refresh();
    }, PAUSE_MS);
  };

  private async refresh(): Promise<void> {
    if (this.busy) return;
    if (!this.snapshot.complete || this.position === "" || this.snapshot.tooMany) {
      await this.load();
      return;
    }
    this.busy = true;
    this.dirty = false;
    let again = false;
    try {
      const answer = await ask(this.run, { after_position: this.position }, this.stop.signal);
      if (answer.reset) again = true;
      else {
        this.position = answer.position;
        const { forest, missing } = patched(this.snapshot.forest, answer);
        again = missing;
        this.tell(answer, forest, { complete: true, tooMany: answer.total > STEPS_MAX });
      }
    } catch (error) {
      this.failed(error);
    } finally {
      this.busy = false;
    }
    if (again) await this.load();
    else if (this.dirty) this.touch();
  }

  private tell(answer: StepColumns, forest: Forest, more: { complete: boolean; tooMany: boolean }): void {
    const before = this.snapshot;
    if (before.forest === forest && before.state === answer.state && before.total === answer.total && before.complete === more.complete && before.error === null) return;
    this.snapshot = { forest, state: answer.state, total: answer.total, error: null, asOf: Date.parse(answer.as_of), ...more };
    for (const listener of this.listeners) listener();
  }

  private failed(error: unknown): void {
    if (this.stop.signal.aborted) return;
    this.snapshot = { ...this.snapshot, error: Problem.of(error) };
    for (const listener of this.listeners) listener();
  }

  close(): void {
    this.stop.abort();
    clearTimeout(this.timer);
  }
}

/** The steps of a run, live while the component is shown. */
export function useSteps(run: string): StepsSnapshot & { again(): void } {
  const store = useMemo(() => new StepsStore(run), [run]);
  useEffect(() => {
    void store.load();
    return () => store.close();
  }, [store]);
  useLive(
    run === "" ? [] : [`run:${run}`],
    useCallback((frame: LiveFrame) => {
      if (frame.type === "resync" || (frame.type === "event" && frame.event.run_id === run)) store.touch();
    }, [store, run]),
  );
  const snapshot = useSyncExternalStore(store.subscribe, store.now);
  return { ...snapshot, again: store.touch };
}
