import { expect, it } from "vitest";
import { sharesOf } from "./strip";

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
const bucket = (minute: number, state: string | null, plane_down = false) => ({ from: at(minute), to: at(minute + 1), state, plane_down });

it("adds up the time in each state, and keeps what is not known and the plane's own absence apart", () => {
  const shares = sharesOf([bucket(0, null), bucket(1, "online"), bucket(2, "online"), bucket(3, null, true), bucket(4, "unreachable", true)]);
  expect(shares).toEqual([["online", 120_000], ["not known", 60_000], ["plane down", 60_000], ["unreachable", 60_000]]);
});
