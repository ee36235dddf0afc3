import { expect, test } from "vitest";
import { undoOf } from "./undo";

test("an undo never drains, for a drain ends workers", () => {
  expect(undoOf("active")).toBe("activate");
  expect(undoOf("cordoned")).toBe("cordon");
  expect(undoOf("draining")).toBeUndefined();
  expect(undoOf("retired")).toBeUndefined();
  expect(undoOf("a word of later")).toBeUndefined();
});
