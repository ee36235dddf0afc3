import { expect, it } from "vitest";
import { stepKey } from "./fold-state";
import { forestOf } from "./fixture";
import type { Row } from "./folds";
import { chosenOf, wayFrom } from "./model";

const forest = forestOf([{ name: "a.root", ended: 100 }, { parent: 0, created: 10 }, { parent: 0, created: 20 }, { parent: 1, created: 12 }]);
const rows = forest.steps.map((step): Row => ({ kind: "step", key: stepKey(step.index), index: step.index, depth: 0, open: null, hidden: 0, way: false, number: null }) as Row);
const at = (selected: number | null, cursor: number | null) => ({ forest, rows, selected, cursor: cursor === null ? null : stepKey(cursor) });

it("keys act on the selected step, else on the marked one, else on the first", () => {
  expect(chosenOf(at(2, 1))).toBe(2);
  expect(chosenOf(at(null, 1))).toBe(1);
  expect(chosenOf(at(null, null))).toBe(0);
});
it("the first of [ ] { } goes to the first step, where there is none to go from", () => {
  for (const where of ["previous", "next", "parent", "child"] as const) expect(wayFrom(at(null, null), where)).toBe(0);
});
it("goes from the marked step without selecting it first", () => {
  expect(wayFrom(at(null, 1), "next")).toBe(2);
  expect(wayFrom(at(null, 1), "child")).toBe(3);
  expect(wayFrom(at(2, 1), "parent")).toBe(0);
  expect(wayFrom(at(2, null), "next")).toBeNull();
});
