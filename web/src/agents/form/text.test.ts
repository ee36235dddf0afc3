import { describe, expect, it } from "vitest";
import { compact, removeAt, setAt } from "./text";

describe("text changed in one place", () => {
  it("changes a value and leaves all the rest as it was typed", () => {
    const text = '{ "a" : 1.0,\n\t"big":9223372036854775807 , "s":"x"}';
    expect(setAt(text, ["a"], "2")).toBe('{ "a" : 2,\n\t"big":9223372036854775807 , "s":"x"}');
    expect(setAt(text, ["s"], '"y"')).toBe('{ "a" : 1.0,\n\t"big":9223372036854775807 , "s":"y"}');
  });

  it("adds what is missing, in the style that is there", () => {
    expect(setAt("{}", ["a"], "1")).toBe('{"a": 1}');
    expect(setAt("", ["a"], "1")).toBe('{"a": 1}');
    expect(setAt('{"a":1}', ["b"], "2")).toBe('{"a":1, "b": 2}');
    expect(setAt('{\n  "a": 1\n}', ["b"], "2")).toBe('{\n  "a": 1,\n  "b": 2\n}');
    expect(setAt("{}", ["place", "tags", 0], '"x"')).toBe('{"place": {"tags": ["x"]}}');
    expect(setAt('{"l":[1]}', ["l", 1], "2")).toBe('{"l":[1, 2]}');
    expect(setAt('{"a":null}', ["a", "b"], "1")).toBe('{"a":{"b": 1}}');
    expect(setAt('{"a\\"b":1}', ['a"b'], "2")).toBe('{"a\\"b":2}');
  });

  it("removes a member with its comma", () => {
    expect(removeAt('{"a":1, "b":2, "c":3}', ["a"])).toBe('{"b":2, "c":3}');
    expect(removeAt('{"a":1, "b":2, "c":3}', ["b"])).toBe('{"a":1, "c":3}');
    expect(removeAt('{"a":1, "b":2, "c":3}', ["c"])).toBe('{"a":1, "b":2}');
    expect(removeAt('{"a":1}', ["a"])).toBe("{}");
    expect(removeAt('{"l":[1,2,3]}', ["l", 1])).toBe('{"l":[1,3]}');
    expect(removeAt('{"a":1}', ["nowhere", "b"])).toBe('{"a":1}');
  });

  it("is JSON after every change, and says what was set", () => {
    let text = "{}";
    const want: Record<string, unknown> = {};
    for (let n = 0; n < 60; n += 1) {
      const key = `k${n % 7}`;
      if (n % 3 === 2) {
        text = removeAt(text, [key]);
        delete want[key];
      } else {
        text = setAt(text, [key, "deep", `x${n % 4}`], String(n));
        const holder = (want[key] ??= {}) as Record<string, Record<string, number>>;
        (holder.deep ??= {})[`x${n % 4}`] = n;
      }
      expect(JSON.parse(text)).toEqual(want);
    }
  });

  it("is compact without a change inside strings", () => {
    expect(compact('{ "a b" : [ 1 , "c  \\" d" ] }\n')).toBe('{"a b":[1,"c  \\" d"]}');
    expect(compact('{"open string   ')).toBe('{"open string   ');
  });
});
