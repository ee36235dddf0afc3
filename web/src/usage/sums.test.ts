import { expect, it } from "vitest";
import { type Sums, missing, money, reasonOf } from "./sums";

const sums = (changes: Partial<Sums> = {}): Sums => ({
  executions: 10, unreported: 0, unreadable: 0, with_other_keys: 0, input_tokens: 1, output_tokens: 1, total_tokens: 2, cache_read_tokens: null, cache_creation_tokens: null, model_calls: null, cost: [], ...changes,
});

it("money is cut, never rounded, and never becomes nothing", () => {
  expect(money("12.4")).toBe("12.40");
  expect(money("1234567.129990000")).toBe("1,234,567.1299…");
  expect(money("0.000000001")).toBe("<0.0001");
  expect(money("99999999999999999999.5")).toBe("99,999,999,999,999,999,999.50");
  expect(money("0")).toBe("0.00");
  expect(money("about 3")).toBe("about 3");
});
it("what was not reported is said", () => {
  expect(missing(sums())).toBeUndefined();
  expect(missing(sums({ unreported: 3, unreadable: 1 }))).toBe("3 of 10 executions reported no usage; 1 reported something that cannot be read");
  expect(reasonOf(sums({ unreported: 10 }))).toBe("no agent reported usage");
  expect(reasonOf(sums({ usage_unknown: "removed by retention" }))).toBe("removed by retention");
});
