// Toasts with Undo, and the one polite live region. Shown by the shell.
import { useSpoken, useToasts } from "./say";

export function Toasts() {
  const toasts = useToasts();
  return (
    <div className="toasts" role="region" aria-label="Notices">
      {toasts.map((each) => (
        <div key={each.id} className="layer flex items-center gap-3 rounded-md border border-border bg-surface px-3 py-2">
          <span>{each.says}</span>
          {each.undo && <button type="button" className="font-semibold text-accent hover:underline" onClick={each.undo}>Undo</button>}
        </div>
      ))}
    </div>
  );
}

export function Spoken() {
  return <p className="visually-hidden" role="status" aria-live="polite">{useSpoken()}</p>;
}
