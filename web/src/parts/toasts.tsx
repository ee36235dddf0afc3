// Toasts with Undo, and the one polite live region. Shown by the shell.
import { useRef } from "react";
import { useKeptFocus } from "./kept-focus";
import { type Toast, useSpoken, useToasts } from "./say";

export function Toasts() {
  const toasts = useToasts();
  return (
    <div className="toasts" role="region" aria-label="Notices">
      {toasts.map((each) => <ToastCard key={each.id} toast={each} />)}
    </div>
  );
}

export function ToastCard({ toast }: { toast: Pick<Toast, "says" | "undo"> }) {
  const box = useRef<HTMLDivElement>(null);
  const kept = useKeptFocus(box);
  return (
    <div ref={box} {...kept} className="layer flex items-center gap-3 rounded-md border border-border bg-surface px-3 py-2">
      <span>{toast.says}</span>
      {toast.undo && <button type="button" className="font-semibold text-accent hover:underline" onClick={toast.undo}>Undo</button>}
    </div>
  );
}

export function Spoken() {
  return <p className="visually-hidden" role="status" aria-live="polite">{useSpoken()}</p>;
}
