// What the reader said about folding, and how it is written into the address: `groups`, `l2`,
// `o` (all open), `c` (all closed), then what was opened (`+1k`) and closed (`-5_2`), and how many
// of a group are shown (`m5_2_100`). Knows nothing of steps.

export type FoldMode = "auto" | "none" | "groups";

export type FoldState = {
  mode: FoldMode;
  /** Everything open, or closed, or open down to a level; `null`: as the mode says. */
  base: "open" | "closed" | number | null;
  /** By row key: what the reader opened or closed. Newest last. */
  set: ReadonlyMap<string, boolean>;
  /** By group key: how many of the long rest are shown. */
  more: ReadonlyMap<string, number>;
};

export const AUTO: FoldState = { mode: "auto", base: null, set: new Map(), more: new Map() };

/** More than these are not kept in the address; the oldest go first. */
const KEPT = 150;

/** The key of a step's row. */
export const stepKey = (index: number) => index.toString(36);

/** The key of a group's row: its caller and its function. */
export const groupKey = (parent: number, name: number) => `${parent < 0 ? "r" : parent.toString(36)}_${name.toString(36)}`;

export function writeFold(fold: FoldState): string {
  const parts: string[] = [];
  if (fold.mode !== "auto") parts.push(fold.mode);
  if (fold.base !== null) parts.push(fold.base === "open" ? "o" : fold.base === "closed" ? "c" : `l${fold.base}`);
  for (const [key, open] of [...fold.set].slice(-KEPT)) parts.push((open ? "*" : "-") + key);
  for (const [key, shown] of [...fold.more].slice(-KEPT)) parts.push(`m${key}_${shown}`);
  return parts.join(".");
}

/** Reads what an address says; what it does not understand it leaves out. */
export function readFold(text: string): FoldState {
  if (text === "") return AUTO;
  let mode: FoldMode = "auto";
  let base: FoldState["base"] = null;
  const set = new Map<string, boolean>();
  const more = new Map<string, number>();
  for (const part of text.split(".")) {
    const key = part.slice(1);
    if (part === "none" || part === "groups") mode = part;
    else if (part === "o") base = "open";
    else if (part === "c") base = "closed";
    else if (/^l\d{1,3}$/.test(part)) base = Number(key);
    else if (/^[*-](r_)?[0-9a-z]+(_[0-9a-z]+)?$/.test(part)) set.set(key, part[0] === "*");
    else if (/^m(r|[0-9a-z]+)_[0-9a-z]+_\d{1,7}$/.test(part)) {
      const cut = key.lastIndexOf("_");
      more.set(key.slice(0, cut), Number(key.slice(cut + 1)));
    }
  }
  return { mode, base, set, more };
}

/** One row opened or closed by the reader. */
export function toggled(fold: FoldState, key: string, open: boolean): FoldState {
  const set = new Map(fold.set);
  set.delete(key);
  set.set(key, open);
  return { ...fold, set };
}

/** Auto, none, groups only, and round again. */
export function cycled(fold: FoldState): FoldState {
  const next: Record<FoldMode, FoldMode> = { auto: "none", none: "groups", groups: "auto" };
  return { ...AUTO, mode: next[fold.mode] };
}
