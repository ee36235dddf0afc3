import { expect, it } from "vitest";
import { endOf, lastLines } from "./exit";

const exit = { code: null, signal: null, at: null, output: "", reason: null };

it("says how a worker ended, and that nobody saw it where nobody did", () => {
  expect(endOf({ exit: { ...exit, code: 0 }, ended_how: "reported", state: "exited" })).toBe("exited with 0");
  expect(endOf({ exit: { ...exit, signal: 9 }, ended_how: "reported", state: "exited" })).toBe("ended by signal 9");
  expect(endOf({ exit, ended_how: "unobserved", state: "exited" })).toBe("ended: unobserved");
  expect(endOf({ exit: null, ended_how: null, state: "lost" })).toBe("lost with its node: nobody saw it end");
});

it("keeps the end of an output and counts what is above", () => {
  expect(lastLines("a\nb\nc\n\n", 2)).toEqual({ text: "b\nc", more: 1 });
});
