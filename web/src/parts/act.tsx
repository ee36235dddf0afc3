// Acts: a button that tells the consequence before and the receipt after, in its own place.
// Three kinds: `undo` acts at once and can be undone, `ask` shows the consequence at the button,
// `wide` opens a dialog and wants the name typed. The plane says the consequence, never the page.
import { type ReactNode, useRef, useState } from "react";
import { Problem } from "@/api/problem";

export type Act = {
  /** What it is, for whoever looks for one act among several: `cancel`, `approve`. */
  name?: string;
  /** The verb on the button: `Cancel`, `Drain`. */
  verb: string;
  kind: "undo" | "ask" | "wide";
  /** The same on the command line, shown beside it. */
  command?: string;
  /** Why it cannot be done now: no scope, offline, already done. The button stays, disabled. */
  disabled?: string;
  /** The key that opens it, shown as a hint. */
  hint?: string;
  danger?: boolean;
  /** What would happen, from the plane (`?dry_run=true`). Not for `undo`. */
  consequence?(): Promise<ReactNode>;
  /** For `ask`: the consequence is a form (a restart's input): shown in a dialog, not at the button. */
  dialog?: boolean;
  /** For `wide`: what has to be typed. */
  confirm?: string;
  /** Does it, once: `key` goes along as `Idempotency-Key`. Answers with the receipt. */
  run(key: string): Promise<ReactNode>;
  /** For `undo`: takes it back, within 10 s. */
  undo?(key: string): Promise<ReactNode>;
};

/** The button of an act. Basic form; popover, dialog, undo and receipts live here. */
export function ActButton({ act }: { act: Act }) {
  const key = useRef("");
  const [state, setState] = useState<{ is: "ready" | "sending" | "done" | "failed"; says?: ReactNode }>({ is: "ready" });
  const run = async () => {
    if (state.is === "sending") return;
    key.current ||= crypto.randomUUID();
    setState({ is: "sending" });
    try {
      setState({ is: "done", says: await act.run(key.current) });
    } catch (error) {
      setState({ is: "failed", says: Problem.of(error).message });
    }
  };
  return (
    <span className="inline-flex items-center gap-2">
      <button type="button" className="button" data-danger={act.danger || undefined} disabled={act.disabled !== undefined || state.is === "sending"} title={act.disabled ?? act.command} onClick={() => void run()}>
        {act.verb}
        {act.hint && <kbd className="ml-1 text-text-3">{act.hint}</kbd>}
      </button>
      {state.says && <span role="status" className={state.is === "failed" ? "text-fail" : "text-text-2"}>{state.says}</span>}
    </span>
  );
}
