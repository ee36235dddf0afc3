// A worker's terminal: watched by default, driven when somebody takes the keyboard. Who watches
// and who drives is always in sight, and the way out is always the same key.
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { addressOf, get, send } from "@/api/client";
import { endOf } from "@/fleet/exit";
import { AskKey } from "@/login/ask";
import { bytes as sizeOf, count } from "@/look/format";
import { ErrorPanel } from "@/parts/says";
import { Find } from "./find";
import { keep, kept } from "./keep";
import { KeyRow } from "./key-row";
import { type TerminalScreen, makeScreen } from "./screen";
import { type Session, openSession } from "./session";

type Props = { worker: string; name: string };

const ROUTE = "/api/v1/fleet/workers/{worker}/terminal/ticket";

async function ticketFor(worker: string): Promise<string> {
  const answer = await send(addressOf(ROUTE, { path: { worker } }), { method: "POST", headers: { accept: "application/json", "content-type": "application/json" }, body: "{}" });
  const { url } = (await answer.json()) as { url: string };
  const address = new URL(url, window.location.href);
  address.protocol = window.location.protocol === "https:" ? "wss:" : "ws:";
  return address.href;
}

/** Why there is no terminal, when there will be none. */
async function refusalOf(worker: string): Promise<{ code: string; message: string } | undefined> {
  const row = await get("/api/v1/fleet/workers/{worker}", { path: { worker } });
  if (row.ended_at !== null) return { code: "agent_exited", message: `it has ended: ${endOf(row)}` };
  if (row.state === "queued") return { code: "queued", message: row.evidence };
  return undefined;
}

export default function Terminal({ worker, name }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [pair, setPair] = useState<{ session: Session; view: TerminalScreen }>();
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let session: Session | undefined;
    const view = makeScreen(
      element,
      {
        typed: (bytes) => void session?.type(bytes),
        key: (event) => keyed(event, session, leave, (pages) => view.scroll(pages)),
        lost: (bytes) => session?.lostHere(bytes),
      },
      kept(),
    );
    const leave = () => {
      session?.watch();
      view.leave();
      bar.current?.querySelector("button")?.focus();
    };
    session = openSession(view.screen, {
      ticket: () => ticketFor(worker),
      open: (address) => new WebSocket(address),
      refusal: () => refusalOf(worker),
      later: (run, ms) => {
        const timer = setTimeout(run, ms);
        return () => clearTimeout(timer);
      },
      now: () => performance.now(),
    });
    const opened = session;
    const watch = new ResizeObserver(() => {
      const own = view.lay();
      if (own) opened.resize(own.rows, own.cols);
    });
    watch.observe(element);
    setPair({ session: opened, view });
    return () => {
      watch.disconnect();
      opened.end();
      view.dispose();
      setPair(undefined);
    };
  }, [worker]);
  return (
    <section aria-label={`Terminal of ${name}`} className="flex flex-col overflow-hidden rounded-md border border-line" data-keys="off">
      {pair ? <Head session={pair.session} view={pair.view} name={name} /> : <div style={{ minHeight: 36 }} />}
      <div ref={box} className="terminal-box" aria-label={`Screen of ${name}`} />
      <div ref={bar}>{pair && <Foot session={pair.session} view={pair.view} />}</div>
    </section>
  );
}

/** Keys that are ours. Everything else is the worker's, and only while this viewer drives. */
function keyed(event: KeyboardEvent, session: Session | undefined, leave: () => void, scroll: (pages: number) => void): boolean {
  if (event.ctrlKey && event.shiftKey && event.key.toUpperCase() === "L") {
    event.preventDefault();
    leave();
    return true;
  }
  const state = session?.state();
  if (state?.seats.driving) return false;
  if (event.key === "Enter" && (state?.phase.is === "closed" || state?.phase.is === "lost" || state?.phase.is === "refused")) {
    event.preventDefault();
    session?.again();
  }
  if (event.key === "PageUp" || event.key === "PageDown") {
    event.preventDefault();
    scroll(event.key === "PageUp" ? -1 : 1);
  }
  // Watching: Tab moves on, Escape and letters are the page's, nothing goes to the worker.
  return !(event.ctrlKey && event.key.toLowerCase() === "c");
}

function useSessionState(session: Session) {
  return useSyncExternalStore(session.subscribe, session.state);
}

function Head({ session, view, name }: { session: Session; view: TerminalScreen; name: string }) {
  const { phase, seats, size, dropped } = useSessionState(session);
  const { driving } = seats;
  const open = phase.is === "open";
  useEffect(() => {
    const own = view.follow(!driving);
    if (own) session.resize(own.rows, own.cols);
    if (driving) view.focus();
  }, [driving, session, view]);
  useEffect(() => {
    if (!driving && size) {
      view.setSize(size);
      view.lay();
    }
  }, [driving, size, view]);
  return (
    <div className={`flex min-h-9 flex-wrap items-center gap-x-4 gap-y-1 border-b px-3 py-1 ${driving ? "border-accent bg-selected" : "border-border bg-surface"}`}>
      <b className="truncate">{name}</b>
      {size && <span className="text-text-3">{size.cols}×{size.rows}</span>}
      <span role="status" aria-live="polite" className="min-w-0">
        {open ? <Seats seats={seats} /> : <span className="text-text-2">{phase.is === "connecting" ? "connecting…" : phase.is === "lost" ? "the connection was lost; trying again" : phase.is === "closed" ? `closed: ${phase.message}` : "not open"}</span>}
      </span>
      {dropped > 0 && <span className="text-wait" title={`${count(dropped)} bytes did not get here: the link or this viewer was slow`}>{sizeOf(dropped)} dropped (slow link)</span>}
    </div>
  );
}

function Seats({ seats }: { seats: { driving: boolean; driver: string | null; viewers: number; why?: string } }) {
  const others = Math.max(0, seats.viewers - 1);
  return (
    <>
      {seats.driving ? <b className="text-accent">you drive</b> : <>you watch; {seats.driver ? <>driving: <b>{seats.driver}</b></> : "nobody drives"}</>}
      <span className="text-text-2">{others === 0 ? ", alone" : `, ${count(others)} other${others === 1 ? "" : "s"} here`}</span>
      {seats.why && <span className="text-text-3"> · {seats.why}</span>}
    </>
  );
}

function Foot({ session, view }: { session: Session; view: TerminalScreen }) {
  const { phase, seats, error, unconfirmed } = useSessionState(session);
  const [finding, setFinding] = useState(false);
  const [reader, setReader] = useState(kept().reader);
  const [keys, setKeys] = useState(false);
  const open = phase.is === "open";
  const taken = seats.driver !== null && !seats.driving;
  const font = (by: number) => keep({ font: view.larger(by) });
  return (
    <div className="flex flex-col gap-2 border-t border-border bg-surface p-2">
      {phase.is === "refused" && (phase.problem.needsKey
        ? <AskKey what="Watching a terminal" scope="operate" signedIn={() => session.again()} />
        : <ErrorPanel error={phase.problem} what="the terminal" retry={() => session.again()} />)}
      {error && <p role="status" className="text-wait"><code>{error.code}</code> {error.message}</p>}
      <div className="flex flex-wrap items-center gap-2">
        {open && (seats.driving
          ? <button type="button" className="button" onClick={() => session.watch()}>Give the keyboard back</button>
          : <button type="button" className="button" data-primary={!taken || undefined} onClick={() => session.drive(false)}>{taken ? "Ask for the keyboard" : "Take the keyboard"}</button>)}
        {open && taken && error?.code === "driven_by_another" && (
          <button type="button" className="button" data-danger onClick={() => session.drive(true)}>Take it from {seats.driver}</button>
        )}
        {!open && phase.is !== "connecting" && phase.is !== "refused" && <button type="button" className="button" data-primary onClick={() => session.again()}>Connect <kbd className="ml-1">⏎</kbd></button>}
        <button type="button" className="button" aria-expanded={finding} onClick={() => setFinding(!finding)}>Find</button>
        <button type="button" className="button" aria-label="A− smaller type" onClick={() => font(-1)}>A−</button>
        <button type="button" className="button" aria-label="A+ larger type" onClick={() => font(1)}>A+</button>
        <button type="button" className="button" aria-pressed={reader} onClick={() => {
          view.readerMode(!reader);
          keep({ reader: !reader });
          setReader(!reader);
        }}>Screen reader</button>
        <button type="button" className="button sm:hidden" aria-expanded={keys} onClick={() => setKeys(!keys)}>Keys</button>
        {seats.driving && unconfirmed > 0 && <span className="text-text-3">{count(unconfirmed)} bytes not taken yet</span>}
        <span className="ml-auto text-text-3">leave: <kbd>Ctrl ⇧ L</kbd></span>
      </div>
      {keys && <KeyRow driving={seats.driving} type={(text) => session.type(new TextEncoder().encode(text))} />}
      {finding && <Find view={view} close={() => { setFinding(false); view.focus(); }} />}
    </div>
  );
}
