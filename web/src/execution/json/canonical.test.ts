import { describe, expect, it } from "vitest";
import { canonicalLines } from "./canonical";

describe("canonical text", () => {
  it("is the same for the same value, whatever the order and the spaces", () => {
    const a = canonicalLines('{"b":[1,{"y":2,"x":1}],"a":{}}');
    expect(a).toEqual(canonicalLines(' { "a" : {} , "b" : [ 1 , { "x" : 1 , "y" : 2 } ] } '));
    expect(a).toEqual(["{", '  "a": {},', '  "b": [', "    1,", "    {", '      "x": 1,', '      "y": 2', "    }", "  ]", "}"]);
    expect(JSON.parse(a.join("\n"))).toEqual({ a: {}, b: [1, { x: 1, y: 2 }] });
  });

  it("keeps numbers and strings as they were written", () => {
    expect(canonicalLines('[9223372036854775807,1.0,"\\u00e9"]')).toEqual(["[", "  9223372036854775807,", "  1.0,", '  "\\u00e9"', "]"]);
  });

  it("keeps repeated keys, and texts that are no JSON", () => {
    expect(canonicalLines('{"a":2,"a":1}')).toEqual(["{", '  "a": 2,', '  "a": 1', "}"]);
    expect(canonicalLines("not\njson")).toEqual(["not", "json"]);
    expect(canonicalLines("")).toEqual([""]);
  });

  it("is not brought down by depth", () => {
    expect(canonicalLines("[".repeat(5_000) + "]".repeat(5_000))).toHaveLength(9_999);
  });
});
