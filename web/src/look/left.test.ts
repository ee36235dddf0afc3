import { expect, it } from "vitest";
import { leftNow, saysLeft } from "./left";

const said = "trip.plan waits for budget.approve: a person decides, 58 m left";

it("takes off what has gone by, in the unit that was said", () => {
  expect(leftNow(said, 0, 30_000)).toBe(said);
  expect(leftNow(said, 0, 90_000)).toBe(said.replace("58 m", "57 m"));
  expect(leftNow("waits, 1 h 20 m left", 0, 25 * 60_000)).toBe("waits, 55 m left");
  expect(leftNow("waits, 2 h 20 m left", 0, 25 * 60_000)).toBe("waits, 1 h 55 m left");
  expect(leftNow("waits, 9 s left", 1000, 5_400)).toBe("waits, 5 s left");
});
it("has none left when it is over, and a clock that is behind adds none", () => {
  expect(leftNow("waits, 9 s left", 0, 60_000)).toBe("waits, no time left");
  expect(leftNow("waits, 9 s left", 10_000, 0)).toBe("waits, 9 s left");
});
it("leaves other words alone", () => {
  expect(saysLeft("3 are left out")).toBe(false);
  expect(saysLeft(said)).toBe(true);
  expect(saysLeft(said)).toBe(true);
  expect(leftNow("4 earlier events are left out", 0, 9e9)).toBe("4 earlier events are left out");
});
