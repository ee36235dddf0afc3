import { expect, it } from "vitest";
import { chosen, toggled } from "./filters";

const ORDER = ["queued", "running", "failed"];

it("a filter that takes several has one address for one state", () => {
  expect(toggled("failed", "queued", ORDER, true)).toBe("queued,failed");
  expect(toggled("queued", "failed", ORDER, true)).toBe("queued,failed");
  expect(toggled("queued,failed", "queued", ORDER, true)).toBe("failed");
  expect(toggled("failed", "failed", ORDER, true)).toBeNull();
});
it("a value of a newer plane stays in the filter", () => {
  expect(toggled("haunted", "queued", ORDER, true)).toBe("queued,haunted");
  expect([...chosen("haunted")]).toEqual(["haunted"]);
});
it("a filter of one takes the last", () => {
  expect(toggled("failed", "queued", ORDER, false)).toBe("queued");
  expect(toggled("queued", "queued", ORDER, false)).toBeNull();
});
