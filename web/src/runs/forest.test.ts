// Forests: windows, patches, broken callers.
import { describe, expect, it } from "vitest";
import { EMPTY, callersOf, childrenOf, patched } from "./forest";
import { answerOf, forestOf, randomSteps } from "./fixture";

describe("a forest", () => {
  it("is the same whether it came at once or by windows", () => {
    const made = randomSteps(3, 500);
    const whole = forestOf(made);
    let parts = EMPTY;
    for (let from = 0; from < made.length; from += 170) parts = patched(parts, answerOf(made.slice(from, from + 170), from)).forest;
    expect(parts.children).toEqual(whole.children);
    expect(parts.steps.map((step) => parts.names[step.name])).toEqual(whole.steps.map((step) => whole.names[step.name]));
  });

  it("keeps what did not change, and says what did", () => {
    const made = randomSteps(5, 100);
    const before = forestOf(made);
    const unchanged = patched(before, answerOf(made));
    expect(unchanged.forest).toBe(before);
    const { forest, changed } = patched(before, answerOf([{ ...made[7], state: "failed", ended: 77 }], 7));
    expect(changed).toEqual([7]);
    expect(forest.children).toBe(before.children);
    expect(forest.steps[6]).toBe(before.steps[6]);
    expect(forest.steps[7]?.state).toBe("failed");
  });

  it("does not take steps from behind a hole", () => {
    const { forest, missing } = patched(EMPTY, answerOf([{}, {}], 5));
    expect(forest.steps).toHaveLength(0);
    expect(missing).toBe(true);
  });

  it("makes a root of a step whose caller is gone, and ends circles", () => {
    const forest = forestOf([{ parent: 2 }, { parent: 99 }, { parent: 0 }, { parent: 0 }]);
    const reached = new Set<number>();
    const visit = (index: number) => {
      expect(reached.has(index)).toBe(false);
      reached.add(index);
      for (const child of childrenOf(forest, index)) visit(child);
    };
    for (const root of forest.roots) visit(root);
    expect(reached.size).toBe(4);
    expect([...callersOf(forest, 3)].length).toBeLessThan(5);
  });
});
