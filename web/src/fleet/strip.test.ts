import { expect, it } from "vitest";
import { sharesOf, sharesSaid } from "./strip";

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
const bucket = (minute: number, state: string | null, plane_down = false) => ({ from: at(minute), to: at(minute + 1), state, plane_down });

it("counts the spans of each state, and keeps what is not known and the plane's own absence apart", () => {
  const shares = sharesOf([bucket(0, null), bucket(1, "online"), bucket(2, "online"), bucket(3, null, true), bucket(4, "unreachable", true)]);
  expect(shares).toEqual([["online", 2], ["not known", 1], ["plane down", 1], ["unreachable", 1]]);
});
it("says spans and not times: a minute of trouble is not a quarter of an hour", () => {
  expect(sharesSaid([bucket(0, "degraded"), bucket(1, "unreachable_callback"), bucket(2, "degraded")])).toBe("the worst of each 1 m: degraded in 2, unreachable callback in 1 of 3");
  expect(sharesSaid([])).toBe("");
});
