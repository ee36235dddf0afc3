// One viewer's session with a worker's terminal: asks for a ticket, opens the socket, keeps who
// drives and what was lost, and connects again when the connection was lost. Watching sends
// nothing. Draws nothing: a screen gets what to paint.
import { Problem } from "@/api/problem";
import { driveFrame, inputFrames, newsOf, resizeFrame, watchFrame } from "./frames";

export type Phase =
  | { is: "connecting" }
  | { is: "open" }
  /** The connection was lost; the next try is at `at` (milliseconds of this page's clock). */
  | { is: "lost"; at: number }
  /** It is over, and why; only a person connects again. */
  | { is: "closed"; code: string; message: string }
  /** It could not be opened: no key, or refused. */
  | { is: "refused"; problem: Problem };

export type Seats = { driving: boolean; driver: string | null; viewers: number; why?: string };

export type SessionState = {
  phase: Phase;
  seats: Seats;
  /** Bytes of output that did not get here. */
  dropped: number;
  /** Bytes typed that the worker has not taken yet. */
  unconfirmed: number;
  /** The last thing that could not be done. */
  error?: { code: string; message: string };
  /** The worker's terminal, as the driver has it. */
  size?: { rows: number; cols: number };
};

export type Screen = {
  /** Paints anew. `after`: `loss` keeps what was there above, `change` paints over it. */
  paint(bytes: Uint8Array, size: { rows: number; cols: number }, after: "start" | "loss" | "change"): void;
  output(text: string): void;
  /** A line of ours between the worker's. */
  note(line: string): void;
};

export type Wires = {
  /** A one-use address for the socket. */
  ticket(): Promise<string>;
  open(address: string): WebSocket;
  /** Why a socket was refused, when that is for good: the worker has ended, or has no place yet. */
  refusal(): Promise<{ code: string; message: string } | undefined>;
  later(run: () => void, ms: number): () => void;
  now(): number;
};

const FIRST_MS = 500;
const MOST_MS = 10_000;

export function openSession(screen: Screen, wires: Wires) {
  let state: SessionState = { phase: { is: "connecting" }, seats: { driving: false, driver: null, viewers: 0 }, dropped: 0, unconfirmed: 0 };
  let socket: WebSocket | undefined;
  let attempts = 0;
  let painted: "never" | "lost" | "now" = "never";
  let cancel: (() => void) | undefined;
  let ended = false;
  const watchers = new Set<() => void>();
  const set = (changes: Partial<SessionState>) => {
    state = { ...state, ...changes };
    for (const watcher of watchers) watcher();
  };
  const nobody: Seats = { driving: false, driver: null, viewers: 0 };
  const send = (frame: string) => {
    if (socket?.readyState !== WebSocket.OPEN) return false;
    socket.send(frame);
    return true;
  };

  function heard(frame: string): void {
    const news = newsOf(frame);
    switch (news?.type) {
      case "ready": {
        const size = { rows: news.rows || 24, cols: news.cols || 80 };
        screen.paint(news.screen, size, painted === "never" ? "start" : painted === "lost" ? "loss" : "change");
        painted = "now";
        attempts = 0;
        set({ size, phase: { is: "open" }, error: undefined });
        return;
      }
      case "output":
        if (news.dropped > 0) set({ dropped: state.dropped + news.dropped });
        screen.output(news.chunk);
        return;
      case "ack":
        set({ unconfirmed: Math.max(0, state.unconfirmed - news.bytes) });
        return;
      case "driver":
        set({
          seats: { driving: news.driving, driver: news.driver, viewers: news.viewers, why: news.why },
          // That somebody asked is told to all, whoever asked included: their refusal still stands.
          error: news.driver === state.seats.driver ? state.error : undefined,
          ...(news.driving ? {} : { unconfirmed: 0 }),
        });
        return;
      case "error":
        set({ error: { code: news.code, message: news.message } });
        return;
      case "closed":
        over(news.code, news.message);
        return;
      case undefined:
    }
  }

  function over(code: string, message: string): void {
    screen.note(`closed: ${message}`);
    set({ phase: { is: "closed", code, message }, seats: nobody, unconfirmed: 0 });
    drop();
  }

  function drop(): void {
    const old = socket;
    socket = undefined;
    old?.close();
  }

  function lost(): void {
    if (ended || state.phase.is === "closed" || state.phase.is === "refused") return;
    drop();
    if (painted === "now") {
      painted = "lost";
      screen.note("the connection was lost; what comes next is painted anew");
    }
    const wait = Math.min(MOST_MS, FIRST_MS * 2 ** attempts);
    attempts += 1;
    set({ phase: { is: "lost", at: wires.now() + wait }, seats: nobody, unconfirmed: 0 });
    cancel?.();
    cancel = wires.later(() => void connect(), wait);
  }

  /** A browser does not tell why a socket was refused; the plane does, when it is asked. */
  async function refused(): Promise<void> {
    const why = await wires.refusal().catch(() => undefined);
    if (ended) return;
    if (why) over(why.code, why.message);
    else lost();
  }

  async function connect(): Promise<void> {
    cancel?.();
    if (ended) return;
    set({ phase: { is: "connecting" }, error: undefined });
    let address: string;
    try {
      address = await wires.ticket();
    } catch (error) {
      if (ended) return;
      const problem = Problem.of(error);
      if (problem.offline || problem.status >= 500) lost();
      else set({ phase: { is: "refused", problem } });
      return;
    }
    if (ended) return;
    drop();
    const opened = wires.open(address);
    socket = opened;
    const mine = () => socket === opened;
    let accepted = false;
    opened.onopen = () => {
      accepted = true;
    };
    opened.onmessage = ({ data }) => {
      if (mine() && typeof data === "string") heard(data);
    };
    opened.onclose = (event) => {
      if (!mine()) return;
      if (event.code === 1008) over("unauthenticated", event.reason || "the key of this session is no longer taken");
      else if (accepted) lost();
      else void refused();
    };
  }

  void connect();
  return {
    state: () => state,
    subscribe(watcher: () => void) {
      watchers.add(watcher);
      return () => {
        watchers.delete(watcher);
      };
    },
    /** Types; only the driver's goes out. Says whether it did. */
    type(bytes: Uint8Array): boolean {
      if (!state.seats.driving || bytes.length === 0) return false;
      const sent = inputFrames(bytes).every(send);
      if (sent) set({ unconfirmed: state.unconfirmed + bytes.length });
      return sent;
    },
    resize(rows: number, cols: number) {
      if (state.seats.driving && send(resizeFrame(rows, cols))) set({ size: { rows, cols } });
    },
    drive: (take: boolean) => send(driveFrame(take)),
    watch: () => send(watchFrame()),
    /** Counts what this page itself could not draw in time. */
    lostHere(bytes: number) {
      set({ dropped: state.dropped + bytes });
    },
    /** Connects again: after a close, a refusal, or instead of the next try. */
    again() {
      attempts = 0;
      if (painted === "now") painted = "lost";
      void connect();
    },
    end() {
      ended = true;
      cancel?.();
      drop();
      watchers.clear();
    },
  };
}

export type Session = ReturnType<typeof openSession>;
