import { expect, it } from "vitest";
import { newKeyOf } from "./scopes";

const typed = { name: " ci ", scopes: new Set(["call", "read"]), agent: "", days: "" };

it("makes a key of what was chosen, and of nothing else", () => {
  expect(newKeyOf(typed)).toEqual({ body: { name: "ci", scopes: ["read", "call"] } });
  expect(newKeyOf({ ...typed, scopes: new Set(["agent"]), agent: "billing", days: "30" })).toEqual({ body: { name: "ci", scopes: ["agent:billing"], expires_in_seconds: 2_592_000 } });
});

it("says what is missing, and never gives a key without a scope or with a misread time", () => {
  expect(newKeyOf({ ...typed, name: "" })).toEqual({ missing: "a name" });
  expect(newKeyOf({ ...typed, scopes: new Set() })).toEqual({ missing: "at least one scope" });
  for (const days of ["1e3", "-1", "0", "7d"]) expect(newKeyOf({ ...typed, days })).toHaveProperty("missing");
});
