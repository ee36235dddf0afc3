import { describe, expect, it } from "vitest";
import { type Diff, diffLines, hunksOf } from "./diff-lines";

/** Both texts again, out of the difference. */
const sides = (diff: Diff, a: string[], b: string[]) => [
  diff.lines.filter((line) => line.op !== "b").map((line) => a[line.a]),
  diff.lines.filter((line) => line.op !== "a").map((line) => b[line.b]),
];

/** Length of the longest common subsequence, the slow and plain way. */
function common(a: string[], b: string[]): number {
  const best = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let x = 1; x <= a.length; x += 1) {
    for (let y = 1; y <= b.length; y += 1) {
      (best[x] as number[])[y] = a[x - 1] === b[y - 1] ? (best[x - 1]?.[y - 1] ?? 0) + 1 : Math.max(best[x - 1]?.[y] ?? 0, best[x]?.[y - 1] ?? 0);
    }
  }
  return best[a.length]?.[b.length] ?? 0;
}

/** The same numbers at every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
}

describe("a difference of lines", () => {
  it("is empty for equal texts", () => {
    expect(diffLines(["a", "b"], ["a", "b"])).toMatchObject({ removed: 0, added: 0, coarse: false });
    expect(diffLines([], [])).toEqual({ lines: [], removed: 0, added: 0, coarse: false });
  });

  it("shows what was changed, removed and added", () => {
    const ops = (a: string, b: string) => diffLines([...a], [...b]).lines.map((line) => (line.op === "same" ? [...a][line.a] : line.op === "a" ? `-${[...a][line.a]}` : `+${[...b][line.b]}`)).join(" ");
    expect(ops("abc", "axc")).toBe("a -b +x c");
    expect(ops("abc", "ac")).toBe("a -b c");
    expect(ops("ac", "abc")).toBe("a +b c");
    expect(ops("", "ab")).toBe("+a +b");
    expect(ops("ab", "")).toBe("-a -b");
  });

  it("gives both texts again, and is as short as it can be", () => {
    const next = numbers(7);
    for (let round = 0; round < 300; round += 1) {
      const make = () => Array.from({ length: Math.floor(next() * 14) }, () => "abcd"[Math.floor(next() * 4)] as string);
      const [a, b] = [make(), make()];
      const diff = diffLines(a, b);
      expect(sides(diff, a, b)).toEqual([a, b]);
      expect(diff.lines.filter((line) => line.op === "same").length, `${a.join("")} ${b.join("")}`).toBe(common(a, b));
    }
  });

  it("takes texts that have little in common as blocks, and says so", () => {
    const a = Array.from({ length: 4000 }, (_, n) => `a${n}`);
    const b = Array.from({ length: 4000 }, (_, n) => `b${n}`);
    const diff = diffLines(["head", ...a, "tail"], ["head", ...b, "tail"]);
    expect(diff.coarse).toBe(true);
    expect(sides(diff, ["head", ...a, "tail"], ["head", ...b, "tail"])).toEqual([["head", ...a, "tail"], ["head", ...b, "tail"]]);
    expect(diff.lines[0]?.op).toBe("same");
    expect(diff.lines.at(-1)?.op).toBe("same");
  });
});

describe("rows of a difference", () => {
  const a = Array.from({ length: 40 }, (_, n) => `line ${n}`);
  const b = a.map((line, n) => (n === 20 ? "other" : line));

  it("fold equal stretches and count them", () => {
    const rows = hunksOf(diffLines(a, b).lines, 3, new Set());
    expect(rows.map((row) => (row.is === "fold" ? row.many : row.line.op))).toEqual([17, "same", "same", "same", "a", "b", "same", "same", "same", 16]);
  });

  it("open where the reader opened", () => {
    expect(hunksOf(diffLines(a, b).lines, 3, new Set([0]))).toHaveLength(17 + 8 + 1);
  });
});
