// Above and below a terminal's screen: how it is connected, who watches and who drives, what was
// lost, and what can be done. Draws the state of a session; holds none of it.
import { useEffect, useState, useSyncExternalStore } from "react";
import { AskKey } from "@/login/ask";
import { bytes as sizeOf, count } from "@/look/format";
import { KeyHint, keyText } from "@/parts/key-hint";
import { ErrorPanel } from "@/parts/says";
import { Find } from "./find";
import { keep, kept } from "./keep";
import { KeyRow } from "./key-row";
import type { TerminalScreen } from "./screen";
import type { Session } from "./session";

function useSessionState(session: Session) {
  return useSyncExternalStore(session.subscribe, session.state);
}

export function Head({ session, view, name }: { session: Session; view: TerminalScreen; name: string }) {
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
      {seats.why && (wanted(seats)
        ? <b role="alert" className="text-wait"> · {seats.why}</b>
        : <span className="text-text-3"> · {seats.why}</span>)}
    </>
  );
}

/** Somebody else asks the one who drives for the keyboard. */
const wanted = (seats: { driving: boolean; why?: string }) => seats.driving && / asks for the keyboard$/.test(seats.why ?? "");

/** Who asked for the keyboard gets it when it is given back: what they type then is not lost. */
function useAsked(session: Session) {
  const { phase, seats, error } = useSessionState(session);
  const [asked, setAsked] = useState(false);
  const open = phase.is === "open";
  const free = open && seats.driver === null && !seats.driving;
  useEffect(() => {
    if (error?.code === "driven_by_another") setAsked(true);
  }, [error]);
  useEffect(() => {
    if (!open || seats.driving) setAsked(false);
    else if (asked && free) {
      setAsked(false);
      session.drive(false);
    }
  }, [asked, free, open, seats.driving, session]);
  return { asked: asked && !seats.driving, forget: () => setAsked(false) };
}

export function Foot({ session, view }: { session: Session; view: TerminalScreen }) {
  const { phase, seats, error, unconfirmed } = useSessionState(session);
  const [finding, setFinding] = useState(false);
  const [reader, setReader] = useState(kept().reader);
  const [keys, setKeys] = useState(false);
  const open = phase.is === "open";
  const taken = seats.driver !== null && !seats.driving;
  const { asked, forget } = useAsked(session);
  const font = (by: number) => keep({ font: view.larger(by) });
  return (
    <div className="flex flex-col gap-2 border-t border-border bg-surface p-2">
      {phase.is === "refused" && (phase.problem.needsKey
        ? <AskKey what="Watching a terminal" scope="operate" signedIn={() => session.again()} />
        : <ErrorPanel error={phase.problem} what="the terminal" retry={() => session.again()} />)}
      {error && !asked && <p role="status" className="text-wait"><code>{error.code}</code> {error.message}</p>}
      <div className="flex flex-wrap items-center gap-2">
        {open && (seats.driving
          ? <button type="button" className="button" data-primary={wanted(seats) || undefined} onClick={() => session.watch()}>Give the keyboard back</button>
          : asked ? <button type="button" className="button" onClick={forget}>Ask no more</button>
          : <button type="button" className="button" data-primary={!taken || undefined} onClick={() => session.drive(false)}>{taken ? "Ask for the keyboard" : "Take the keyboard"}</button>)}
        {asked && <span role="status" className="text-text-2">you drive when {seats.driver} gives it back</span>}
        {open && taken && asked && (
          <button type="button" className="button" data-danger onClick={() => session.drive(true)}>Take it from {seats.driver}</button>
        )}
        {!open && phase.is !== "connecting" && phase.is !== "refused" && <button type="button" className="button" data-primary onClick={() => session.again()}>Connect<KeyHint k="Enter" /></button>}
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
        <span className="keyboard-only ml-auto text-text-3">leave: <kbd>{keyText("Ctrl+Shift+L")}</kbd></span>
      </div>
      {keys && <KeyRow driving={seats.driving} type={(text) => session.type(new TextEncoder().encode(text))} />}
      {finding && <Find view={view} close={() => { setFinding(false); view.focus(); }} />}
    </div>
  );
}
