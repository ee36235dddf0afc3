// Pairing two runs: by replay first, then by index; nothing is guessed, nothing is lost.
import { describe, expect, it } from "vitest";
import { differs, paired } from "./pairing";
import { forestOf, randomSteps } from "./fixture";

describe("pairs", () => {
  it("pair equal calls by their index, and leave the rest alone", () => {
    const a = forestOf([{ name: "t.plan" }, { parent: 0, name: "w.look" }, { parent: 0, name: "w.look" }, { parent: 0, name: "m.send" }]);
    const b = forestOf([{ name: "t.plan" }, { parent: 0, name: "w.look", state: "failed" }, { parent: 0, name: "x.new" }]);
    const pairs = paired(a, b);
    expect(pairs.map((pair) => [pair.name, pair.number, pair.a?.index ?? null, pair.b?.index ?? null])).toEqual([
      ["t.plan", 0, 0, 0], ["w.look", 1, 1, 1], ["w.look", 2, 2, null], ["m.send", 0, 3, null], ["x.new", 0, null, 2],
    ]);
    expect(pairs.map(differs)).toEqual([false, true, true, true, true]);
  });

  it("what was taken over is paired with what it was taken from, whatever its place", () => {
    const a = forestOf([{ name: "t.plan" }, { parent: 0, name: "w.look", id: "exec_one" }, { parent: 0, name: "w.look", id: "exec_two" }]);
    const b = forestOf([{ name: "t.plan" }, { parent: 0, name: "w.look", replayOf: "exec_two", flags: 16 }, { parent: 0, name: "w.look" }]);
    expect(paired(a, b).slice(1).map((pair) => [pair.a?.index, pair.b?.index])).toEqual([[1, 2], [2, 1]]);
  });

  it("what ran below a step that was taken over did not have to run again, and is no difference", () => {
    const a = forestOf([{ name: "t.plan" }, { parent: 0, name: "t.city", id: "exec_city" }, { parent: 1, name: "w.look" }]);
    const b = forestOf([{ name: "t.plan" }, { parent: 0, name: "t.city", replayOf: "exec_city", flags: 16 }]);
    const pairs = paired(a, b);
    expect(pairs.map((pair) => pair.covered)).toEqual([false, false, true]);
    expect(pairs.some(differs)).toBe(false);
  });

  it.each(Array.from({ length: 10 }, (_, seed) => [seed]))("hold every step once (seed %i)", (seed) => {
    const a = forestOf(randomSteps(seed, 150));
    const b = forestOf(randomSteps(seed + 50, 130));
    const pairs = paired(a, b);
    for (const [forest, side] of [[a, "a"], [b, "b"]] as const) {
      const found = pairs.flatMap((pair) => pair[side]?.index ?? []);
      expect(found.length).toBe(new Set(found).size);
      expect(found.length).toBe(forest.steps.length);
    }
    expect(paired(a, a).every((pair) => pair.a === pair.b)).toBe(true);
  });
});
