import { expect, it } from "vitest";
import { histogramSentence, logBuckets, percentile, sparkPaths, sparkSentence } from "./charts";

it("what is unknown is a gap, never a zero", () => {
  const { lines, gaps } = sparkPaths([1, 2, null, null, 0, 4], 100, 20);
  expect(lines).toHaveLength(2);
  expect(gaps).toEqual([{ x: 40, width: 40 }]);
  expect(sparkSentence([1, 2, null, null, 0, 4], "started")).toBe("started: 4 now, between 0 and 4, 2 of 6 unknown");
  expect(sparkSentence([null, null], "started")).toBe("started: nothing is known");
  expect(sparkSentence([3, null], "started")).toContain("unknown now");
});
it("a single known value between unknown ones is still there", () => {
  expect(sparkPaths([null, 5, null], 100, 20).lines).toEqual(["M50 1"]);
});
it("every duration is in exactly one bucket", () => {
  const durations = [0, 1, 5, 5, 80, 900, 12_000, 12_000].map((ms, index) => ({ ms, failed: index === 4 }));
  const buckets = logBuckets(durations);
  expect(buckets).toHaveLength(24);
  expect(buckets.reduce((sum, bucket) => sum + bucket.count, 0)).toBe(8);
  expect(buckets.reduce((sum, bucket) => sum + bucket.failed, 0)).toBe(1);
  expect(logBuckets([{ ms: 5 }, { ms: 5 }]).reduce((sum, bucket) => sum + bucket.count, 0)).toBe(2);
});
it("a percentile is a value that occurred", () => {
  expect(percentile([10, 20, 30, 40], 0.5)).toBe(20);
  expect(percentile([10, 20, 30, 40], 0.95)).toBe(40);
  expect(percentile([], 0.5)).toBeUndefined();
  expect(histogramSentence([{ ms: 10 }, { ms: 20, failed: true }])).toBe("2 durations, half under 10 ms, 95 % under 20 ms, longest 20 ms, 1 failed");
});
