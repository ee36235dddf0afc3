// Keys that a phone has not, for whoever drives from one.

const KEYS = [
  ["Esc", "\x1b"], ["Tab", "\t"], ["Ctrl C", "\x03"], ["Ctrl D", "\x04"], ["Ctrl Z", "\x1a"],
  ["←", "\x1b[D"], ["↓", "\x1b[B"], ["↑", "\x1b[A"], ["→", "\x1b[C"], ["Enter", "\r"],
] as const;

export function KeyRow({ driving, type }: { driving: boolean; type(text: string): void }) {
  return (
    <div className="flex flex-wrap gap-2" role="group" aria-label="Keys">
      {!driving && <p className="text-text-2">Take the keyboard to use these.</p>}
      {KEYS.map(([name, text]) => (
        <button key={name} type="button" className="button" disabled={!driving} onClick={() => type(text)}>{name}</button>
      ))}
    </div>
  );
}
