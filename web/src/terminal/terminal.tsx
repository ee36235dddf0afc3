// A worker's terminal: watched by default, driven when somebody takes the keyboard. Who watches
// and who drives is always in sight, and the way out is always the same key.
import { useEffect, useRef, useState } from "react";
import { addressOf, get, send } from "@/api/client";
import { endOf } from "@/fleet/exit";
import { Foot, Head } from "./bars";
import { kept } from "./keep";
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
