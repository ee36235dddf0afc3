// Where the cards of the graph stand: callers left of what they call, each caller in the middle of
// its calls, calls in their order from top to bottom. Placed cards never move; `placed` puts new
// ones at the next free place under their last sibling. Pure.
import type { Row } from "./folds";

export type Card = { key: string; x: number; y: number };
export type Node = { key: string; parent: string | null; depth: number };

export const WIDTH = 208;
export const HEIGHT = 44;
const GAP_X = 56;
const GAP_Y = 10;
const STRIDE = HEIGHT + GAP_Y;

/** The cards of these rows, each with the one it hangs on. */
export function nodesOf(rows: readonly Row[]): Node[] {
  const above: string[] = [];
  return rows.map((row) => {
    above.length = row.depth;
    const parent = above.at(-1) ?? null;
    above.push(row.key);
    return { key: row.key, parent, depth: row.depth };
  });
}

/** Lays all of them out anew. */
export function laidOut(nodes: readonly Node[]): Map<string, Card> {
  const children = new Map<string | null, Node[]>();
  for (const node of nodes) {
    const list = children.get(node.parent);
    if (list) list.push(node);
    else children.set(node.parent, [node]);
  }
  const cards = new Map<string, Card>();
  let next = 0;
  const place = (node: Node): number => {
    const below = children.get(node.key) ?? [];
    let y: number;
    if (below.length === 0) {
      y = next;
      next += STRIDE;
    } else {
      const first = place(below[0] as Node);
      let last = first;
      for (const child of below.slice(1)) last = place(child);
      y = (first + last) / 2;
    }
    cards.set(node.key, { key: node.key, x: node.depth * (WIDTH + GAP_X), y });
    return y;
  };
  for (const root of children.get(null) ?? []) place(root);
  return cards;
}

/** Those that were placed stay; those that are new are put where there is room; the rest is gone. */
export function placed(nodes: readonly Node[], before: ReadonlyMap<string, Card>): Map<string, Card> {
  const known = nodes.filter((node) => before.has(node.key));
  if (known.length === 0) return laidOut(nodes);
  const cards = new Map(known.map((node) => [node.key, before.get(node.key) as Card]));
  if (known.length === nodes.length) return cards;
  const taken = new Map<number, number[]>();
  for (const card of cards.values()) take(taken, card);
  const lastSibling = new Map<string | null, Card>();
  for (const node of nodes) {
    const card = cards.get(node.key);
    const sibling = lastSibling.get(node.parent);
    if (card && (!sibling || card.y > sibling.y)) lastSibling.set(node.parent, card);
  }
  for (const node of nodes) {
    if (cards.has(node.key)) continue;
    const x = node.depth * (WIDTH + GAP_X);
    const sibling = lastSibling.get(node.parent);
    const caller = node.parent === null ? undefined : cards.get(node.parent);
    let y = sibling ? sibling.y + STRIDE : (caller?.y ?? 0);
    const column = taken.get(x) ?? [];
    for (let clash = column.find((other) => Math.abs(other - y) < STRIDE); clash !== undefined; clash = column.find((other) => Math.abs(other - y) < STRIDE)) y = clash + STRIDE;
    const card = { key: node.key, x, y };
    cards.set(node.key, card);
    take(taken, card);
    lastSibling.set(node.parent, card);
  }
  return cards;
}

function take(taken: Map<number, number[]>, card: Card): void {
  const column = taken.get(card.x);
  if (column) column.push(card.y);
  else taken.set(card.x, [card.y]);
}
