import { describe, expect, it } from "vitest";
import { Problem } from "@/api/problem";
import { bodyOf, curlOf, fieldOf, musterOf } from "./call-send";

const wanted = { target: "a.f", input: '{ "n": 9223372036854775807,\n "s": "it\'s" }', lane: "async" as const, priority: 5, key: "" };

describe("a call as it is sent", () => {
  it("has every digit that was typed", () => {
    expect(bodyOf(wanted)).toBe('{"input":{"n":9223372036854775807,"s":"it\'s"}}');
    expect(bodyOf({ input: "", priority: 0 })).toBe('{"input":{},"priority":0}');
    expect(bodyOf({ input: "{broken", priority: 5 })).toBe('{"input":{broken}');
  });

  it("is one word of a shell in the lines to copy", () => {
    expect(curlOf(wanted, "http://h")).toBe(
      `curl -s http://h/api/v1/execute/async/a.f -H 'content-type: application/json' -d '{"input":{"n":9223372036854775807,"s":"it'\\''s"}}'`,
    );
    expect(musterOf({ ...wanted, lane: "sync", key: "k 1" })).toBe(
      `muster call a.f --input '{"n":9223372036854775807,"s":"it'\\''s"}' --key 'k 1'`,
    );
    expect(musterOf({ ...wanted, priority: 2 })).toBeUndefined();
  });

  it("finds the field that a refusal names", () => {
    const refused = (body: unknown) => new Problem("validation", "x", 400, { body });
    expect(fieldOf(refused({ details: { field: "place.tags.0" } }))).toBe("place.tags[0]");
    expect(fieldOf(refused({ details: { field: "input.city" } }))).toBe("city");
    expect(fieldOf(refused({}))).toBeUndefined();
  });
});
