// How this reader wants terminals: size of type, screen-reader mode. Kept in this browser.

export type Kept = { font: number; reader: boolean };
const KEY = "muster.terminal";

export function kept(): Kept {
  try {
    const read = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Kept>;
    return { font: typeof read.font === "number" ? read.font : 13, reader: read.reader === true };
  } catch {
    return { font: 13, reader: false };
  }
}

export function keep(changes: Partial<Kept>): void {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...kept(), ...changes }));
  } catch {
    // A browser that stores nothing forgets it with the tab.
  }
}
