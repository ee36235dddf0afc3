// The rows of a folding tree over tokens: which values are shown, with which folds. Long strings
// are folded too, and open into rows of their own.
import { type Lines, linesOf, rowsOf } from "./lines";
import { type Node, type Tokens, decoded, sourceOf } from "./tokens";

/** A string with more characters than this is folded. */
export const STRING_FOLD = 2048;
/** Characters of a folded string that are shown. */
export const STRING_SHOWN = 160;
const STRING_COLUMNS = 100;
/** Containers above this depth are open at first, unless they are large. */
const OPEN_DEPTH = 3;
const OPEN_COUNT = 200;

/** A row shows a value, or a part of a string that was opened. */
export type Row = { node: number; part: number };

export const isHolder = (node: Node): boolean => node.kind === "object" || node.kind === "array";
export const isLong = (node: Node): boolean => node.kind === "string" && node.end - node.start > STRING_FOLD;

/** Whether a value is open before the reader said anything. */
export const opensAtFirst = (node: Node): boolean => isHolder(node) && node.depth < OPEN_DEPTH && node.count <= OPEN_COUNT;

/** `changed`: what the reader turned from how it was at first. `all` opens or closes everything instead. */
export type Folds = { all?: "open" | "closed"; changed: ReadonlySet<number> };

export function isOpen(tokens: Tokens, index: number, folds: Folds): boolean {
  const node = tokens.nodes[index] as Node;
  const first =
    folds.all === "open" ? isHolder(node) : folds.all === "closed" ? node.parent < 0 && isHolder(node) : opensAtFirst(node) || (node.parent < 0 && isHolder(node));
  return folds.changed.has(index) ? !first : first;
}

/** An opened string, in lines. */
export function linesOfString(tokens: Tokens, node: Node): { text: string; lines: Lines } {
  const text = decoded(sourceOf(tokens, node));
  return { text, lines: linesOf(text, STRING_COLUMNS) };
}

/** The rows in order. */
export function rowsOfTree(tokens: Tokens, folds: Folds): Row[] {
  const rows: Row[] = [];
  let index = 0;
  while (index < tokens.nodes.length) {
    const node = tokens.nodes[index] as Node;
    rows.push({ node: index, part: -1 });
    if (isHolder(node)) {
      index = isOpen(tokens, index, folds) ? index + 1 : node.next;
      continue;
    }
    if (isLong(node) && isOpen(tokens, index, folds)) {
      const many = rowsOf(linesOfString(tokens, node).lines);
      for (let part = 0; part < many; part += 1) rows.push({ node: index, part });
    }
    index += 1;
  }
  return rows;
}
