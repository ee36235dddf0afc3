import { describe, expect, it } from "vitest";
import { decoded, keyOf, pathOf, sourceOf, tokensOf } from "./tokens";

const kinds = (text: string) => tokensOf(text).nodes.map((node) => node.kind);

describe("reading JSON as it is written", () => {
  it("keeps every digit of a number", () => {
    const tokens = tokensOf('{"a": 9223372036854775807, "b": -0.10e+400, "c": 1.0}');
    expect(tokens.fault).toBeUndefined();
    expect(tokens.nodes.slice(1).map((node) => sourceOf(tokens, node))).toEqual(["9223372036854775807", "-0.10e+400", "1.0"]);
  });

  it("keeps repeated keys, in order", () => {
    const tokens = tokensOf('{"a":1,"a":2}');
    expect(tokens.nodes.slice(1).map((node) => [keyOf(tokens, node), sourceOf(tokens, node)])).toEqual([["a", "1"], ["a", "2"]]);
  });

  it("knows what holds what", () => {
    const tokens = tokensOf('[{"a":[1,2]},[],"x"]');
    expect(tokens.nodes.map((node) => [node.kind, node.depth, node.parent, node.count, node.next])).toEqual([
      ["array", 0, -1, 3, 7],
      ["object", 1, 0, 1, 5],
      ["array", 2, 1, 2, 5],
      ["number", 3, 2, 0, 4],
      ["number", 3, 2, 0, 5],
      ["array", 1, 0, 0, 6],
      ["string", 1, 0, 0, 7],
    ]);
    expect(pathOf(tokens, 4)).toBe("$[0].a[1]");
    expect(pathOf(tokens, 0)).toBe("$");
  });

  it("writes odd keys of a path so that they can be used", () => {
    const tokens = tokensOf('{"a b":{"\\u202e\\"":1}}');
    expect(pathOf(tokens, 2)).toBe('$["a b"]["\u202e\\""]');
  });

  it("reads what every JSON parser reads, without a fault", () => {
    for (const text of ["0", "-0", "1e5", "true", "null", '""', "[]", "{}", ' [ 1 , {"a" : null } ] ', '"\\ud83d\\ude80"']) {
      expect(() => JSON.parse(text)).not.toThrow();
      expect(tokensOf(text).fault, text).toBeUndefined();
      expect(tokensOf(text).nodes[0]?.cut, text).toBe(false);
    }
  });

  it("finds a fault in whatever a JSON parser refuses", () => {
    for (const text of ["", "  ", "{", "[1,", "[1 2]", '{"a"}', '{"a":}', "{a:1}", "[1,]", '{"a":1,}', "01", "1.", ".5", "+1", "NaN",
      "Infinity", "undefined", "'x'", '"a', '"a\nb"', "[1]x", "[}", "{]", "]", "}", ",", ":", "nul", "\ufeff1", "[1}", '{"a":1]']) {
      expect(() => JSON.parse(text), text).toThrow();
      expect(tokensOf(text).fault, text).toBeDefined();
    }
  });

  it("shows what it can of a wrong text", () => {
    expect(kinds("[1, NaN, Infinity, 2]")).toEqual(["array", "number", "odd", "odd", "number"]);
    expect(kinds('{"a":1 "b":2}')).toEqual(["object", "number"]);
    const tokens = tokensOf('{"a":[1,2 oops');
    expect(tokens.nodes.every((node) => node.end <= tokens.text.length && node.next <= tokens.nodes.length)).toBe(true);
    expect(tokens.stopped).toBe(10);
  });

  it("takes the end of a part for no fault, and says what is cut", () => {
    const tokens = tokensOf('{"rows":[{"n":12},{"n":34', { partial: true });
    expect(tokens.fault).toBeUndefined();
    expect(tokens.nodes.map((node) => node.cut)).toEqual([true, true, false, false, true, true]);
    for (const part of ['{"a', '{"a"', '{"a":', '{"a":"x', '{"a":tr', "[1,", "[", '{"a":"\\', "[-"]) {
      expect(tokensOf(part, { partial: true }).fault, part).toBeUndefined();
    }
  });

  it("is not brought down by depth or by many values", () => {
    const deep = tokensOf("[".repeat(150_000), { partial: true });
    expect(deep.nodes.length).toBe(150_000);
    expect(deep.nodes.at(-1)?.depth).toBe(149_999);
    const many = tokensOf(`[${"1,".repeat(300_000)}1]`);
    expect(many.more).toBe(true);
    expect(many.nodes.length).toBe(200_000);
    expect(many.nodes[0]?.next).toBe(200_000);
  });

  it("reads every beginning of a text without failing", () => {
    const text = '{"a":[1.5e3,true,null,"\\u00e9\\"x\\\\"],"b":{"c":{}},"d":[[],[{}]]}';
    for (let end = 0; end <= text.length; end += 1) {
      const tokens = tokensOf(text.slice(0, end), { partial: true });
      for (const node of tokens.nodes) {
        expect(node.end).toBeGreaterThanOrEqual(node.start);
        expect(node.next).toBeLessThanOrEqual(tokens.nodes.length);
      }
    }
  });
});

describe("string literals", () => {
  it("are decoded as JSON says", () => {
    for (const literal of ['"a\\n\\t\\"\\\\\\/\\b\\f\\r"', '"\\u0041\\ud83d\\ude80"', '"é"', '""']) {
      expect(decoded(literal)).toBe(JSON.parse(literal));
    }
  });

  it("keep half of a pair, and what is no escape", () => {
    expect(decoded('"\\ud800"')).toBe("\ud800");
    expect(decoded('"\\x41\\u12"')).toBe("\\x41\\u12");
    expect(decoded('"cut\\')).toBe("cut\\");
    expect(decoded('"cut')).toBe("cut");
    expect(decoded('"')).toBe("");
  });
});
