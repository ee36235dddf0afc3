// The graph's places: no two cards on one another, callers in the middle, and what is placed stays.
import { describe, expect, it } from "vitest";
import { AUTO } from "./fold-state";
import { folded, remember } from "./folds";
import { forestOf, random, randomSteps } from "./fixture";
import { type Card, HEIGHT, type Node, laidOut, nodesOf, placed } from "./graph-layout";

const node = (key: string, parent: string | null, depth: number): Node => ({ key, parent, depth });
const overlaps = (cards: Map<string, Card>) => {
  const list = [...cards.values()];
  return list.filter((a, at) => list.slice(at + 1).some((b) => a.x === b.x && Math.abs(a.y - b.y) < HEIGHT));
};

describe("the graph", () => {
  it("puts each caller in the middle of its calls, in their order", () => {
    const cards = laidOut([node("r", null, 0), node("a", "r", 1), node("b", "r", 1), node("c", "b", 2), node("d", "b", 2)]);
    const y = (key: string) => cards.get(key)?.y ?? -1;
    expect(y("a")).toBeLessThan(y("b"));
    expect(y("b")).toBe((y("c") + y("d")) / 2);
    expect(y("r")).toBe((y("a") + y("b")) / 2);
    expect(cards.get("r")?.x).toBeLessThan(cards.get("a")?.x ?? 0);
  });

  it("puts a new call under its last sibling, or at the next free place", () => {
    const before = laidOut([node("r", null, 0), node("a", "r", 1), node("b", "r", 1)]);
    const after = placed([node("r", null, 0), node("a", "r", 1), node("x", "a", 2), node("b", "r", 1), node("c", "r", 1)], before);
    for (const [key, card] of before) expect(after.get(key)).toBe(card);
    expect(after.get("c")?.y).toBeGreaterThan(before.get("b")?.y ?? 0);
    expect(after.get("x")?.y).toBe(before.get("a")?.y);
  });

  it.each(Array.from({ length: 10 }, (_, seed) => [seed]))("never moves a placed card, never puts two on one another (seed %i)", (seed) => {
    const made = randomSteps(seed, 240);
    const next = random(seed);
    const memory = remember();
    let cards: Map<string, Card> = new Map();
    for (let shown = 20; shown <= made.length; shown += 10 + Math.floor(next() * 40)) {
      const rows = folded({ forest: forestOf(made.slice(0, shown)), fold: AUTO, filter: { only: "all", slower: null }, selected: null, critical: new Set(), now: 0 }, memory).rows;
      const after = placed(nodesOf(rows), cards);
      expect([...cards].filter(([key, card]) => after.has(key) && after.get(key) !== card)).toEqual([]);
      expect(overlaps(after)).toEqual([]);
      expect(after.size).toBe(rows.length);
      cards = after;
    }
  });
});
