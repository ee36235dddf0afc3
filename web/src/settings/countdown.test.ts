import { expect, it } from "vitest";
import { clockOf } from "./countdown";

it("counts down from fifteen minutes and never below zero", () => {
  expect([900_000, 899_999, 61_000, 999, -5].map(clockOf)).toEqual(["15:00", "14:59", "1:01", "0:00", "0:00"]);
});
