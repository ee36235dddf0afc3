// Folds: the order of the rules, the sentence's numbers, and that live changes move nothing.
import { describe, expect, it } from "vitest";
import { criticalPath } from "./critical";
import { AUTO, type FoldState, readFold, toggled, writeFold } from "./fold-state";
import { type Filter, type Memory, type Row, folded, remember, stays } from "./folds";
import { EMPTY, type Forest, callersOf, patched } from "./forest";
import { type Made, answerOf, forestOf, random, randomSteps } from "./fixture";

const ALL: Filter = { only: "all", slower: null };
const NOW = 1_000;

function rowsOf(forest: Forest, given: { fold?: FoldState; filter?: Filter; selected?: number; memory?: Memory; critical?: ReadonlySet<number> } = {}) {
  return folded(
    { forest, fold: given.fold ?? AUTO, filter: given.filter ?? ALL, selected: given.selected ?? null, critical: given.critical ?? new Set(), now: NOW },
    given.memory ?? remember(),
  );
}
/** `0 1 [f×6] …`: steps by index, groups by their size. */
const drawn = (rows: Row[]) =>
  rows.map((row) => "  ".repeat(row.depth) + (row.kind === "step" ? row.index : row.kind === "group" ? `[×${row.members.length}${row.open ? " open" : ""}]` : `more ${row.left}`)).join("\n");
const fan = (count: number, each: (n: number) => Made = () => ({})): Made[] => [
  { name: "a.root", ended: 900 },
  ...Array.from({ length: count }, (_, n): Made => ({ parent: 0, name: "b.leaf", created: n, ended: n + 10 + n, ...each(n) })),
];

describe("groups", () => {
  it("five equal siblings stay rows, six become one row", () => {
    expect(rowsOf(forestOf(fan(5))).rows).toHaveLength(6);
    const six = rowsOf(forestOf(fan(6)));
    expect(drawn(six.rows)).toBe("0\n  [×6]");
    expect(six).toMatchObject({ steps: 7, folded: 6, groups: 1 });
  });

  it("only siblings of one function under one caller are a group", () => {
    const forest = forestOf(fan(12, (n) => ({ name: n % 3 ? "b.leaf" : "c.leaf" })));
    expect(drawn(rowsOf(forest).rows)).toBe("0\n  1\n  [×8]\n  4\n  7\n  10");
  });

  it("an open group shows failed, waiting, running, the five slowest, then call order by fifty", () => {
    const state = (n: number) => (n === 70 ? { state: "running", ended: null } : n === 80 ? { state: "failed" } : n === 90 ? { state: "waiting", ended: null } : {});
    const forest = forestOf(fan(100, state));
    const fold = toggled(AUTO, "0_1", true);
    const { rows } = rowsOf(forest, { fold });
    const members = rows.filter((row) => row.kind === "step" && row.depth === 2).map((row) => (row.kind === "step" ? row.index : -1));
    expect(members.slice(0, 10)).toEqual([81, 91, 71, 100, 99, 98, 97, 96, 1, 2]);
    expect(members).toHaveLength(3 + 5 + 50);
    expect(rows.at(-1)).toMatchObject({ kind: "more", left: 42 });
  });

  it("a closed group lets failed, waiting and running members be seen, fifty at most", () => {
    const forest = forestOf(fan(300, (n) => (n % 3 === 0 ? { state: "failed" } : {})));
    const { rows, steps, folded: hidden, groups } = rowsOf(forest);
    expect(rows).toHaveLength(2 + 50);
    expect({ steps, hidden, groups }).toEqual({ steps: 301, hidden: 250, groups: 1 });
  });

  it("a group that the reader closed shows nothing", () => {
    const forest = forestOf(fan(10, (n) => (n === 2 ? { state: "failed" } : {})));
    expect(drawn(rowsOf(forest, { fold: toggled(AUTO, "0_1", false) }).rows)).toBe("0\n  [×10]");
  });
});

describe("long runs", () => {
  const chain = (): Made[] => {
    const made: Made[] = [{ name: "a.r", ended: 900 }];
    for (let arm = 0; arm < 60; arm++) {
      let parent = 0;
      for (let depth = 1; depth <= 5; depth++) {
        made.push({ parent, name: `a.arm${arm}d${depth}`, created: arm, ended: 100 + (arm === 7 ? 500 : 0) });
        parent = made.length - 1;
      }
    }
    return made;
  };

  it("fold succeeded parts below depth three, not those of the critical path", () => {
    const forest = forestOf(chain());
    const critical = criticalPath(forest, NOW).steps;
    const { rows } = rowsOf(forest, { critical });
    const deepest = rows.filter((row) => row.depth > 3);
    expect(deepest.length).toBe(2);
    expect(rows.filter((row) => row.kind === "step" && row.open === false)).toHaveLength(59);
  });

  it("short runs do not", () => {
    const forest = forestOf(chain().slice(0, 150));
    expect(rowsOf(forest).folded).toBe(0);
  });

  it("never the way to the selected step", () => {
    const forest = forestOf(chain());
    const selected = 20;
    const { rows } = rowsOf(forest, { selected });
    const shown = new Set(rows.map((row) => (row.kind === "step" ? row.index : -1)));
    for (const index of [selected, ...callersOf(forest, selected)]) expect(shown).toContain(index);
  });
});

describe("filters", () => {
  it("take rows away and keep the way to what matches", () => {
    const forest = forestOf([{ name: "a.a", ended: 900 }, { parent: 0, name: "a.b", ended: 500 }, { parent: 1, name: "a.c", state: "failed" }, { parent: 0, name: "a.d" }]);
    const found = rowsOf(forest, { filter: { only: "failed", slower: null } });
    expect(drawn(found.rows)).toBe("0\n  1\n    2");
    expect(found).toMatchObject({ matching: 1, steps: 3, folded: 0 });
    expect(found.rows.map((row) => row.kind === "step" && row.way)).toEqual([true, true, false]);
    expect(rowsOf(forest, { filter: { only: "all", slower: 300 } }).rows).toHaveLength(2);
  });
});

describe("the address", () => {
  it("carries what was said, both ways", () => {
    for (const text of ["", "none", "groups", "o", "c", "l3", "groups.l2.*1k.-5_2.*r_0.m5_2_100", "-r_1"]) {
      expect(writeFold(readFold(text))).toBe(text);
    }
  });
  it("what it does not understand is left out", () => {
    expect(writeFold(readFold("<script>.*5.l9999.m1.zz..-~"))).toBe("*5");
  });
});

describe("live", () => {
  /** Rows that were there keep their order among themselves. */
  const keeps = (before: Row[], after: Row[]) => {
    const keys = new Set(after.map((row) => row.key));
    expect(before.filter((row) => row.kind !== "more" && !keys.has(row.key))).toEqual([]);
    const old = new Set(before.map((row) => row.key));
    expect(after.filter((row) => old.has(row.key)).map((row) => row.key)).toEqual(before.filter((row) => keys.has(row.key)).map((row) => row.key));
  };

  it("the sixth sibling makes a group below the five, not around them", () => {
    const memory = remember();
    const five = rowsOf(forestOf(fan(5)), { memory });
    const nine = rowsOf(forestOf(fan(9)), { memory });
    expect(drawn(nine.rows)).toBe("0\n  1\n  2\n  3\n  4\n  5\n  [×4]");
    keeps(five.rows, nine.rows);
    expect(drawn(rowsOf(forestOf(fan(9))).rows)).toBe("0\n  [×9]");
  });

  it("a new child of a folded group changes only its numbers", () => {
    const memory = remember();
    const before = rowsOf(forestOf(fan(20)), { memory });
    const after = rowsOf(forestOf(fan(25)), { memory });
    expect(after.rows.map((row) => row.key)).toEqual(before.rows.map((row) => row.key));
    expect(after.rows[1]).toMatchObject({ kind: "group", hidden: 25 });
  });

  it("a part that ends does not fold by itself, and a filter lets go of nothing", () => {
    const memory = remember();
    const filter: Filter = { only: "running", slower: null };
    const made = fan(4, () => ({ state: "running", ended: null }));
    const before = rowsOf(forestOf(made), { memory, filter });
    const after = rowsOf(forestOf(fan(4)), { memory, filter });
    expect(after.rows.map((row) => row.key)).toEqual(before.rows.map((row) => row.key));
  });

  it.each(Array.from({ length: 10 }, (_, seed) => [seed]))("whatever comes, no row leaves or overtakes another (seed %i)", (seed) => {
    const made = randomSteps(seed, 260);
    const next = random(seed + 1000);
    const memory = remember();
    let forest = patched(EMPTY, answerOf(made.slice(0, 40))).forest;
    let before = rowsOf(forest, { memory }).rows;
    for (let shown = 40; shown < made.length; shown += 20) {
      for (const [index, step] of made.entries()) {
        if (index < shown && step.ended === null && next() < 0.3) made[index] = { ...step, state: next() < 0.8 ? "succeeded" : "failed", ended: (step.created ?? 0) + 200 };
      }
      forest = patched(forest, answerOf(made.slice(0, shown + 20))).forest;
      const after = rowsOf(forest, { memory, critical: criticalPath(forest, NOW).steps });
      keeps(before, after.rows);
      const steps = after.rows.filter((row) => row.kind === "step").length;
      expect(steps + after.folded).toBe(forest.steps.length);
      before = after.rows;
    }
  });
});

describe("any tree", () => {
  it.each(Array.from({ length: 10 }, (_, seed) => [seed]))("every step has a row or is counted as folded, once (seed %i)", (seed) => {
    const next = random(seed + 7);
    const forest = forestOf(randomSteps(seed, 50 + Math.floor(next() * 900)));
    const modes: FoldState[] = [AUTO, readFold("none"), readFold("groups"), readFold("o"), readFold("c"), readFold("l2")];
    for (const fold of modes) {
      const filter: Filter = next() < 0.5 ? ALL : { only: "failed", slower: null };
      const found = rowsOf(forest, { fold, filter, selected: Math.floor(next() * forest.steps.length) });
      const steps = found.rows.flatMap((row) => (row.kind === "step" ? [row.index] : []));
      expect(new Set(steps).size).toBe(steps.length);
      expect(new Set(found.rows.map((row) => row.key)).size).toBe(found.rows.length);
      expect(steps.length + found.folded).toBe(found.steps);
      const counted = found.rows.reduce((sum, row) => sum + (row.kind === "step" && row.open === false ? row.hidden : row.kind === "group" && !row.open ? row.hidden : 0), 0);
      if (fold.mode === "none") expect(counted).toBe(0);
    }
  });
});

describe("selecting", () => {
  it.each([1, 2, 3])("a step that has a row moves none (seed %i)", (seed) => {
    const forest = forestOf(randomSteps(seed, 400));
    const { steps: critical } = criticalPath(forest, NOW);
    const folds: FoldState[] = [AUTO, { ...AUTO, mode: "none" }, { ...AUTO, mode: "groups" }, { ...AUTO, base: 2 }, { ...AUTO, base: "open" }, { ...AUTO, base: "closed" }];
    for (const fold of folds) {
      for (const filter of [ALL, { only: "trouble", slower: null }, { only: "all", slower: 100 }]) {
        const memory = remember();
        const { rows } = rowsOf(forest, { fold, filter, memory, critical });
        const seen = rows.flatMap((row) => (row.kind === "step" ? [row.index] : []));
        for (const selected of seen.filter((_, at) => at % 29 === 0)) {
          expect(stays(rows, selected)).toBe(true);
          expect(rowsOf(forest, { fold, filter, selected, memory, critical }).rows).toEqual(rows);
        }
      }
    }
  });

  it("a step without a row makes them anew", () => {
    const forest = forestOf(fan(10));
    const { rows } = rowsOf(forest);
    expect(stays(rows, null)).toBe(true);
    expect(stays(rows, 5)).toBe(false);
    expect(drawn(rowsOf(forest, { selected: 5 }).rows)).toBe("0\n  [×10]\n    5");
  });
});
