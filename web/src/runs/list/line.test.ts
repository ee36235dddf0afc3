import { expect, it } from "vitest";
import { OPEN, partsOf, sumOf, whyOfRun } from "./line";

it("a bar keeps every state apart, and one that it does not know", () => {
  expect(partsOf({ failed: 1, succeeded: 3, haunted: 2, queued: 0 })).toEqual([
    { state: "succeeded", count: 3 }, { state: "failed", count: 1 }, { state: "haunted", count: 2 },
  ]);
  expect(sumOf({ failed: 1, succeeded: 3, haunted: 2 })).toBe(6);
  expect(sumOf({ failed: 1, running: 3, paused: 1 }, OPEN)).toBe(4);
});

it("a reason that says its category twice is what the root says", () => {
  expect(whyOfRun({ why: "cancelled: cancelled", root: { error: "cancelled by ada: not needed" } })).toBe("cancelled by ada: not needed");
  expect(whyOfRun({ why: "cancelled: cancelled" })).toBe("cancelled");
  expect(whyOfRun({ why: "agent_error: KeyError" })).toBe("agent_error: KeyError");
  expect(whyOfRun({})).toBeUndefined();
});
