import { expect, it } from "vitest";
import { best, fit } from "./match";

it("letters in order fit, others do not", () => {
  expect(fit("Overview", "ovw")).toBeDefined();
  expect(fit("Overview", "wo")).toBeUndefined();
  expect(fit("Overview", "")).toBe(0);
});
it("the start of a word is better than its middle", () => {
  expect(best(["Settings: theme dark", "Go to Agents", "Agents"], (each) => each, "agents")[0]).toBe("Agents");
  expect(best(["rerun", "Go to Runs"], (each) => each, "run")).toEqual(["Go to Runs", "rerun"]);
});
it("what fits alike keeps its order", () => {
  expect(best(["a1", "a2", "a3"], (each) => each, "")).toEqual(["a1", "a2", "a3"]);
});
