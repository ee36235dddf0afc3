import { expect, it } from "vitest";
import { ago, bytes, count, duration, percent, short, shortId, span, time } from "./format";

it("durations are cut, never rounded over a bound", () => {
  expect([0, 0.4, 840, 999.9, 1240, 9999, 12_490, 14_960, 59_999, 187_000, 8_460_000, 360_000_000].map(duration)).toEqual([
    "<1 ms", "<1 ms", "840 ms", "999 ms", "1.24 s", "9.99 s", "12.4 s", "14.9 s", "59.9 s", "3 m 07 s", "2 h 21 m", "4 d 4 h",
  ]);
  expect(duration(null)).toBe("—");
});
it("ages have no decimals and know the future", () => {
  expect([300, 12_900, 240_000, 8_460_000].map(span)).toEqual(["0 s", "12 s", "4 m", "2 h 21 m"]);
  expect([999, 240_000, -9_500].map(ago)).toEqual(["now", "4 m ago", "in 9 s"]);
});
it("numbers are exact, short ones only where they are cut", () => {
  expect(count(9_223_372_036_854_775_807n)).toBe("9,223,372,036,854,775,807");
  for (const each of [0, 7, 999, 1_000, 88_211, 1_292_211, -999, -1_000, -128_999, 1_234.5, 2 ** 53, 1e21]) expect(count(each)).toBe(each.toLocaleString("en-US"));
  expect([9_999, 10_000, 88_211, 128_999, 1_292_211, 999_999_999].map(short)).toEqual(["9,999", "10.0 k", "88.2 k", "128 k", "1.29 M", "999 M"]);
  expect(percent(9, 312)).toBe("9 of 312, 3 %");
  expect(percent(1, 1000)).toBe("1 of 1,000, <1 %");
  expect(percent(999, 1000)).toBe("999 of 1,000, 99 %");
  expect([1023, 1024, 3_251_000, 67_108_864].map(bytes)).toEqual(["1023 B", "1.0 KiB", "3.1 MiB", "64 MiB"]);
});
it("ids show the tail that differs, foreign ones whole when they are short", () => {
  expect(shortId("exec_01M8NE8YXTEHJRX7D5M37K2F9Q")).toBe("exec_…7K2F9Q");
  expect(shortId("nightly-2026-11-29")).toBe("nightly-2026-11-29");
  expect(shortId("0123456789abcdef0123456789abcdef")).toBe("01234567…abcdef");
});
it("times are of today without a date, and say UTC", () => {
  const now = Date.parse("2026-11-29T18:00:00Z");
  expect(time(Date.parse("2026-11-29T14:02:11Z"), "utc", now)).toBe("14:02:11\u202fUTC");
  expect(time(Date.parse("2026-11-28T14:02:11Z"), "utc", now)).toBe("2026-11-28 14:02:11\u202fUTC");
});
it("times are what the platform says of either zone, on both sides of a change of its clocks", () => {
  const before = process.env.TZ;
  try {
    for (const zone of ["Europe/Berlin", "America/St_Johns", "UTC"]) {
      process.env.TZ = zone;
      for (const of of ["2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z", "2026-10-25T00:59:59Z", "2026-12-31T23:59:59Z", "2027-01-01T03:04:05Z"]) {
        const ms = Date.parse(of);
        expect(time(ms, "local", 0)).toBe(new Date(ms).toLocaleString("sv-SE", { timeZone: zone }));
        expect(time(ms, "utc", 0)).toBe(`${new Date(ms).toLocaleString("sv-SE", { timeZone: "UTC" })}\u202fUTC`);
      }
    }
  } finally {
    if (before === undefined) delete process.env.TZ;
    else process.env.TZ = before;
  }
});
