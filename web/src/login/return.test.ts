import { describe, expect, it } from "vitest";
import { codeOf, nextOf } from "./return";

describe("the way back after a sign-in", () => {
  it("goes to a page of the dashboard with its view", () => {
    expect(nextOf("/fleet/workers/wrk_1/terminal")).toBe("/fleet/workers/wrk_1/terminal");
    expect(nextOf("/ui/runs?state=failed")).toBe("/runs?state=failed");
  });
  it("never leads to another origin, to a script, or round in a circle", () => {
    for (const bad of ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/ui//evil.example", "\thttps://evil.example", "/login?next=/login", null, ""]) {
      expect(nextOf(bad), String(bad)).toBe("/");
    }
  });
});

it("reads the code of the fragment alone", () => {
  expect(codeOf("#code=ab-12")).toBe("ab-12");
  expect(codeOf("#code=")).toBeUndefined();
  expect(codeOf("")).toBeUndefined();
});
