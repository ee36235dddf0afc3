import { expect, it } from "vitest";
import { fieldTime, rangeOf, readable, timeField } from "./range";

const NOW = Date.parse("2026-11-29T18:00:07.123Z");

it("a relative range moves, in steps, so that its answer stays cached", () => {
  expect(rangeOf("1h", NOW)).toEqual({ text: "1h", since: "2026-11-29T17:00:00.000Z", absolute: false });
  expect(rangeOf("1h", NOW + 2_000).since).toBe(rangeOf("1h", NOW).since);
});
it("an absolute range stands still", () => {
  expect(rangeOf("2026-11-01T00:00:00Z..2026-11-02T00:00:00Z", NOW)).toMatchObject({
    since: "2026-11-01T00:00:00.000Z", until: "2026-11-02T00:00:00.000Z", absolute: true,
  });
});
it("a range that ends in the future goes on until then", () => {
  expect(rangeOf("2026-11-29T00:00:00Z..2026-11-30T00:00:00Z", NOW)).toMatchObject({ until: "2026-11-30T00:00:00.000Z", absolute: false });
});
it("a range without an end goes on", () => {
  expect(rangeOf("2026-11-01T00:00:00Z..", NOW)).toEqual({ text: "2026-11-01T00:00:00Z..", since: "2026-11-01T00:00:00.000Z", absolute: false });
});
it("what cannot be read is the default, never everything", () => {
  for (const wrong of ["", "x", "9..", "2026-11-02..2026-11-01", "5y"]) expect(rangeOf(wrong, NOW).text).toBe("24h");
});
it("everything is asked for by name", () => {
  expect(rangeOf("all", NOW)).toEqual({ text: "all", absolute: false });
});
it("a field holds the reader's clock", () => {
  expect(fieldTime(timeField(NOW, "utc"), "utc")).toBe(Math.floor(NOW / 1000) * 1000);
  expect(fieldTime(timeField(NOW, "local"), "local")).toBe(Math.floor(NOW / 1000) * 1000);
  expect(fieldTime("", "utc")).toBeUndefined();
});
it("says what is no range, so that the page can tell", () => {
  for (const text of ["15m", "24h", "7d", "all", "2026-11-01T00:00:00Z..2026-11-02T00:00:00Z", "2026-11-01T00:00:00Z.."]) expect(readable(text), text).toBe(true);
  for (const text of ["nonsense", "3", "2026-11-02T00:00:00Z..2026-11-01T00:00:00Z", "x..y"]) expect(readable(text), text).toBe(false);
});
