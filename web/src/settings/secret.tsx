// A secret that is shown once: it must be copied, or said to be kept, before it goes. It is held
// in this component alone, and gone with it.
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useKeptFocus } from "@/parts/kept-focus";
import { Dialog } from "@/parts/layer";
import { useCopy } from "@/parts/values";
import { holdPage } from "@/router";

type Props = {
  text: string;
  what: string;
  /** A command with the secret in it: copied whole, shown with a word in the secret's place. */
  command?: { shown: string; whole: string };
  more?: ReactNode;
  done(): void;
};

export function Secret({ text, what, command, more, done }: Props) {
  const [copied, copy] = useCopy();
  const [commandCopied, copyCommand] = useCopy();
  const [kept, setKept] = useState(false);
  const [seen, setSeen] = useState(false);
  const [leaving, setLeaving] = useState<() => void>();
  const box = useRef<HTMLElement>(null);
  const held = useKeptFocus(box);
  useEffect(() => box.current?.focus(), []);
  useEffect(() => {
    if (kept) return;
    // Leaving the page would lose it for good.
    const stay = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", stay);
    const free = holdPage((go) => setLeaving(() => go));
    return () => {
      window.removeEventListener("beforeunload", stay);
      free();
    };
  }, [kept]);
  return (
    <section ref={box} {...held} tabIndex={-1} aria-label={what} className="flex flex-col gap-3 rounded-md border-2 border-accent bg-surface p-4">
      <p><b>{what}.</b> It is shown this once, and cannot be asked for again.</p>
      <div className="flex flex-wrap items-center gap-2">
        <code className="min-w-0 flex-1 rounded-sm border border-border bg-sunken px-2 py-1 break-all select-all" aria-label={seen ? undefined : "hidden"}>
          {seen ? text : "•".repeat(Math.min(40, text.length))}
        </code>
        <button type="button" className="button" aria-pressed={seen} onClick={() => setSeen(!seen)}>{seen ? "Hide" : "Show"}</button>
        <button type="button" className="button" data-primary onClick={() => { copy(text); setKept(true); }}>{copied ? "Copied" : "Copy"}</button>
      </div>
      {more}
      {command && (
        <div className="flex flex-wrap items-center gap-2">
          <code className="min-w-0 flex-1 rounded-sm border border-border bg-sunken px-2 py-1 break-words">{command.shown}</code>
          <button type="button" className="button" onClick={() => { copyCommand(command.whole); setKept(true); }}>{commandCopied ? "Copied with it" : "Copy the command"}</button>
        </div>
      )}
      {leaving && (
        <Dialog close={() => setLeaving(undefined)} label="Leave without the secret">
          <h2 className="mb-2 text-lg">Leave without it?</h2>
          <p className="mb-3">{what} was neither copied nor confirmed. It is not shown again: whoever needs it needs a new one.</p>
          <div className="flex gap-2">
            <button type="button" className="button" data-first onClick={() => setLeaving(undefined)}>Stay</button>
            <button type="button" className="button" data-solid="danger" onClick={leaving}>Leave</button>
          </div>
        </Dialog>
      )}
      <div className="flex flex-wrap items-center gap-3">
        <label className="flex min-h-6 items-center gap-2"><input type="checkbox" checked={kept} onChange={(event) => setKept(event.target.checked)} /> I have it</label>
        <button type="button" className="button" disabled={!kept} title={kept ? undefined : "copy it, or say that you have it"} onClick={done}>Close</button>
      </div>
    </section>
  );
}
