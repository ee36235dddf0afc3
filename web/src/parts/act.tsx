// Acts: a button that tells the consequence before and the receipt after, in its own place.
// Three kinds: `undo` acts at once and can be undone, `ask` shows the consequence at the button,
// `wide` opens a dialog and wants the name typed. The plane says the consequence, never the page.
import { type ReactNode, useContext, useEffect, useId, useReducer, useRef, useState } from "react";
import { Problem } from "@/api/problem";
import { useMissing } from "@/api/session";
import { useLiveState, useOfflineSince } from "@/live/stream";
import { Link } from "@/router";
import { useKeys } from "@/shell/keys";
import { Group, Needs, toLogin } from "./act-group";
import { type ActState, Partly, confirms, next } from "./act-state";
import { useKeptFocus } from "./kept-focus";
import { KeyHint } from "./key-hint";
import { Dialog, Popover } from "./layer";
import { offerAct } from "./offers";
import { announce, toast } from "./say";
import { CommandLine } from "./says";

export { Partly } from "./act-state";

export type Act = {
  /** What it is, for whoever looks for one act among several: `cancel`, `approve`. */
  name?: string;
  /** The verb on the button: `Cancel`, `Drain`. */
  verb: string;
  kind: "undo" | "ask" | "wide";
  /** What it is done to, for screen readers and the palette: `run plan-trip`. */
  object?: string;
  /** The same on the command line, shown beside it. */
  command?: string;
  /** Why it cannot be done now: already done, no such state. The button stays, disabled. */
  disabled?: string;
  /** The scope that the key must have. Without it the button stays, disabled, and says so. */
  scope?: string;
  /** The key that opens it: `p`, `Shift+R`. Registered while the button is there. */
  hint?: string;
  danger?: boolean;
  primary?: boolean;
  /** The word that leaves all as it is. Default `Keep`. */
  keep?: string;
  /** What would happen, from the plane (`?dry_run=true`). Not for `undo`. */
  consequence?(): Promise<ReactNode>;
  /** For `ask`: the consequence is a form (a restart's input): shown in a dialog, not at the button. */
  dialog?: boolean;
  /** Fields of the act (a reason, a cap), shown under the consequence. */
  form?: ReactNode;
  /** For `wide`: what has to be typed. */
  confirm?: string;
  /** Does it, once: `key` goes along as `Idempotency-Key`. Answers with the receipt, or `Partly`. */
  run(key: string): Promise<ReactNode | Partly>;
  /** For `undo`: takes it back, within 10 s. */
  undo?(key: string): Promise<ReactNode>;
};

/** How long a receipt stays in the button's place, and an undo is offered. */
const RECEIPT_MS = 10_000;

/** Why an act cannot be done now: offline first, then the missing scope, then its own reason. */
export function useBarred(act: Pick<Act, "disabled" | "scope">): string | undefined {
  const offline = useOfflineSince();
  const missing = useMissing(act.scope);
  if (offline !== undefined) return "the plane does not answer; acts wait until it does";
  return missing ?? act.disabled;
}

/** What an act goes through, for a button, a menu or a key that starts it. */
export function useAct(act: Act) {
  const [state, dispatch] = useReducer(next, { is: "ready" } as ActState);
  const latest = useRef(act);
  latest.current = act;
  const now = useRef(state);
  now.current = state;
  const forget = useRef<() => void>(undefined);
  const gone = useRef(false);
  /** How what was done is undone: as it was then, for the act may be another by now. */
  const back = useRef<Act["undo"]>(undefined);
  const undoable = () => latest.current.kind === "undo" && back.current !== undefined;
  // What was acted on has changed, and with it what can be done: the button is gone, its receipt is not.
  useEffect(() => {
    gone.current = false;
    return () => {
      gone.current = true;
      const { current } = now;
      if (current.is === "done" && !undoable()) toast(current.says, { ms: RECEIPT_MS });
    };
  }, []);

  const failed = (error: unknown) => {
    const problem = Problem.of(error);
    dispatch({ event: "failed", problem });
    announce(`${latest.current.verb} failed: ${problem.message}`);
  };
  const send = async (key: string) => {
    back.current = latest.current.undo;
    try {
      const answer = await latest.current.run(key);
      const partial = answer instanceof Partly;
      const says = answer instanceof Partly ? answer.says : answer;
      dispatch({ event: "ended", says, partial });
      if (gone.current && !undoable()) toast(says, { ms: RECEIPT_MS });
      announce(`${latest.current.verb}: ${typeof says === "string" ? says : "done"}`);
      if (undoable()) forget.current = toast(says, { undo, ms: RECEIPT_MS });
    } catch (error) {
      failed(error);
    }
  };
  const undo = () => {
    forget.current?.();
    dispatch({ event: "undo" });
    back.current?.(crypto.randomUUID()).then(
      (says) => {
        dispatch({ event: "undone", says });
        toast(says, { ms: 4_000 });
        announce(typeof says === "string" ? says : "undone");
      },
      failed,
    );
  };
  const open = () => {
    const { is } = now.current;
    if (is === "checking" || is === "confirm" || is === "sending" || is === "undoing") return;
    const key = crypto.randomUUID();
    const { kind, consequence } = latest.current;
    now.current = kind === "undo" ? { is: "sending", key } : { is: "checking" };
    dispatch({ event: "open", kind, key });
    if (kind === "undo") void send(key);
    else Promise.resolve(consequence?.()).then((says) => dispatch({ event: "checked", says, key }), failed);
  };
  const go = () => {
    const { current } = now;
    if (current.is !== "confirm" && !(current.is === "failed" && current.during === "sending")) return;
    now.current = { is: "sending", key: current.key };
    dispatch({ event: "go" });
    void send(current.key);
  };
  const keep = () => dispatch({ event: "keep" });

  const settled = state.is === "done" || state.is === "undone";
  useEffect(() => {
    if (!settled) return;
    const timer = setTimeout(() => dispatch({ event: "keep" }), RECEIPT_MS);
    return () => clearTimeout(timer);
  }, [settled]);
  return { state, open, go, keep, undo, undoable: back.current !== undefined };
}

/** The button of an act. It keeps its place: consequence, sending and receipt appear there. */
export function ActButton({ act, compact }: { act: Act; compact?: boolean }) {
  const { state, open, go, keep, undo, undoable } = useAct(act);
  const barred = useBarred(act);
  const missing = useMissing(act.scope);
  const group = useContext(Group);
  useEffect(() => (missing === undefined || !act.scope ? undefined : group?.lack(act.scope, missing)), [group, act.scope, missing]);
  const button = useRef<HTMLButtonElement>(null);
  const [width, setWidth] = useState<number>();
  const begin = () => {
    setWidth(button.current?.offsetWidth);
    open();
  };
  const name = act.object ? `${act.verb} ${act.object}` : act.verb;
  useKeys(act.hint ? [{ key: act.hint, does: name, run: () => barred === undefined && begin() }] : []);
  useEffect(
    () => offerAct({ name, command: act.command, hint: act.hint, barred, open: () => barred === undefined && begin() }),
    [name, act.command, act.hint, barred],
  );
  const asking = act.kind !== "undo" && (state.is === "checking" || state.is === "confirm" || (state.is === "sending" && state.says !== undefined) || state.is === "failed");
  const busy = state.is === "sending" || state.is === "undoing";
  const settled = state.is === "done" || state.is === "undone";
  const box = useRef<HTMLSpanElement>(null);
  const kept = useKeptFocus(box);
  return (
    <span ref={box} className="act relative inline-flex items-center" style={{ minWidth: width }} {...kept}>
      {settled ? (
        <Receipt state={state} undo={undoable ? undo : undefined} />
      ) : (
        <button
          ref={button}
          type="button"
          className={compact ? "button button-compact" : "button"}
          data-danger={act.danger || undefined}
          data-primary={act.primary || undefined}
          aria-disabled={barred !== undefined || busy || undefined}
          aria-haspopup={act.kind === "undo" ? undefined : "dialog"}
          aria-expanded={act.kind === "undo" ? undefined : asking}
          title={barred ?? act.command}
          onClick={() => barred === undefined && begin()}
        >
          {busy ? `${act.verb} …` : act.verb}
          {act.object && <span className="visually-hidden"> {act.object}</span>}
          {barred && <span className="visually-hidden">: {barred}</span>}
          {act.hint && !compact && <KeyHint k={act.hint} />}
        </button>
      )}
      {missing !== undefined && group === null && !compact && !settled && <Needs scope={act.scope} missing={missing} />}
      {state.is === "failed" && act.kind === "undo" && (
        <span role="alert" className="ml-2 inline-flex items-center gap-2 text-fail"><Refused problem={state.problem} />
          {state.problem.offline && <button type="button" className="text-accent hover:underline" onClick={go}>Retry</button>}
        </span>
      )}
      {asking && act.kind === "ask" && !act.dialog && (
        <Popover anchor={button} close={keep} label={name} className="w-[min(420px,calc(100vw-16px))]">
          <Confirm act={act} state={state} go={go} keep={keep} />
        </Popover>
      )}
      {asking && (act.kind === "wide" || act.dialog) && (
        <Dialog close={keep} label={name}>
          <h2 className="mb-2 text-lg">{name}</h2>
          <Confirm act={act} state={state} go={go} keep={keep} />
        </Dialog>
      )}
    </span>
  );
}

/** An act without a button: asked as soon as it is there, in a dialog; its receipt is a toast. */
export function ActNow({ act, done }: { act: Act; done(): void }) {
  const { state, open, go, keep } = useAct(act);
  const begun = useRef(false);
  useEffect(() => {
    if (!begun.current) open();
    begun.current = true;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once
  }, []);
  const ended = state.is === "done" || state.is === "undone";
  useEffect(() => {
    if (ended) done();
    // eslint-disable-next-line react-hooks/exhaustive-deps -- when it ends
  }, [ended]);
  const name = act.object ? `${act.verb} ${act.object}` : act.verb;
  const leave = () => {
    keep();
    done();
  };
  if (ended) return null;
  return (
    <Dialog close={leave} label={name}>
      <h2 className="mb-2 text-lg">{name}</h2>
      <Confirm act={act} state={state} go={go} keep={leave} />
    </Dialog>
  );
}

/** What was done, in the button's place: all of it, a part, or taken back. */
export function Receipt({ state, undo }: { state: Extract<ActState, { is: "done" | "undone" }>; undo?(): void }) {
  return (
    <span role="status" tabIndex={-1} data-kept className={`inline-flex min-h-7 items-center gap-2 ${state.is === "done" && state.partial ? "text-wait" : "text-text-2"}`}>
      {state.says ?? "done"}
      {state.is === "done" && undo && <button type="button" className="text-accent hover:underline" onClick={undo}>Undo</button>}
    </span>
  );
}

/** Why the plane refused, and where to get the key that it wants. */
function Refused({ problem }: { problem: Problem }) {
  return (
    <span className="wrap-anywhere">
      <code>{problem.category}</code> {problem.message}
      {problem.detail.hint && <span className="text-text-2"> {problem.detail.hint}</span>}
      {problem.needsKey && <> <Link className="text-accent underline" to={toLogin()}>Sign in</Link>{problem.detail.needs && <span className="text-text-2" data-needs={problem.detail.needs}> with a key that has the scope {problem.detail.needs}</span>}</>}
    </span>
  );
}

/** Consequence, what has to be typed, Keep and the verb. Keep has the focus. */
export function Confirm({ act, state, go, keep }: { act: Act; state: ActState; go(): void; keep(): void }) {
  const [typed, setTyped] = useState("");
  const field = useId();
  const wanted = act.kind === "wide" ? act.confirm : undefined;
  const unsure = wanted !== undefined && !confirms(typed, wanted);
  const failed = state.is === "failed" ? state : undefined;
  const lost = failed?.during === "sending" && failed.problem.offline;
  const { live } = useLiveState();
  const back = lost && (live.state === "live" || live.state === "resynced");
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        if (!unsure) go();
      }}
    >
      <div aria-live="polite" className="min-h-[18px] text-text-2">
        {state.is === "checking" && <span className="text-text-3">asking what this would do …</span>}
        {(state.is === "confirm" || state.is === "sending") && state.says}
        {failed && (back
          ? <span className="text-wait">The plane did not answer then, and does now. Whether it was done is not known; to try again does it once at most.</span>
          : <span className="text-fail"><Refused problem={failed.problem} /></span>)}
      </div>
      {!failed && act.form}
      {wanted !== undefined && !failed && (
        <label htmlFor={field} className="flex flex-col gap-1">
          <span>Type <code className="select-all rounded-sm bg-sunken px-1">{wanted}</code> to go on. This cannot be undone.</span>
          <input id={field} className="field" autoComplete="off" spellCheck={false} value={typed} onChange={(event) => setTyped(event.target.value)} />
        </label>
      )}
      {act.command && <CommandLine command={act.command} />}
      <div className="flex flex-wrap gap-2">
        <button type="button" className="button" data-first onClick={keep} disabled={state.is === "sending"}>{failed ? "Close" : (act.keep ?? "Keep")}</button>
        {(!failed || lost) && (
          <button type="submit" className="button" data-solid={act.danger ? "danger" : "primary"} disabled={(state.is !== "confirm" && !lost) || unsure}>
            {state.is === "sending" ? `${act.verb} …` : lost ? "Try again" : act.verb}
          </button>
        )}
      </div>
    </form>
  );
}
