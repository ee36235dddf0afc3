import { describe, expect, it } from "vitest";
import { pathOf, tokensOf } from "./tokens";
import { isLong, rowsOfTree } from "./tree";

const none = { changed: new Set<number>() };
const paths = (text: string, folds = none as Parameters<typeof rowsOfTree>[1]) => {
  const tokens = tokensOf(text);
  return rowsOfTree(tokens, folds).map((row) => pathOf(tokens, row.node));
};

describe("the tree of a payload", () => {
  const text = '{"a":{"b":{"c":{"d":1}}},"e":2}';

  it("is open at first down to a depth", () => {
    expect(paths(text)).toEqual(["$", "$.a", "$.a.b", "$.a.b.c", "$.e"]);
  });

  it("opens and closes what the reader turns", () => {
    expect(paths(text, { changed: new Set([1]) })).toEqual(["$", "$.a", "$.e"]);
    expect(paths(text, { changed: new Set([3]) })).toEqual(["$", "$.a", "$.a.b", "$.a.b.c", "$.a.b.c.d", "$.e"]);
    expect(paths(text, { all: "open", changed: new Set() })).toHaveLength(6);
    expect(paths(text, { all: "closed", changed: new Set() })).toEqual(["$", "$.a", "$.e"]);
  });

  it("shows a large list folded, and a list of a hundred thousand opened in one pass", () => {
    const many = `{"rows":[${Array.from({ length: 100_000 }, (_, n) => n).join(",")}]}`;
    expect(paths(many)).toEqual(["$", "$.rows"]);
    const tokens = tokensOf(many);
    expect(rowsOfTree(tokens, { changed: new Set([1]) })).toHaveLength(100_002);
  });

  it("folds strings over 2 KiB and opens them into rows", () => {
    const long = JSON.stringify({ s: "x".repeat(3000), t: "y".repeat(2000) });
    const tokens = tokensOf(long);
    expect(tokens.nodes.map(isLong)).toEqual([false, true, false]);
    expect(rowsOfTree(tokens, none)).toHaveLength(3);
    const opened = rowsOfTree(tokens, { changed: new Set([1]) });
    expect(opened.filter((row) => row.part >= 0)).toHaveLength(30);
  });
});
