import { expect, it } from "vitest";
import { below, match, path } from "./router";

it("ids in paths survive, whatever they are made of", () => {
  const id = "a/b ?#%ü";
  expect(match("/runs/:run", path("runs", id))).toEqual({ run: id });
  expect(match("/runs/:run", "/runs/%E0%A4%A")).toBeNull();
  expect(match("/runs/:run", "/runs")).toBeNull();
});
it("a path that the plane gave is one below the base", () => {
  expect(below("/ui/runs/run_1")).toBe("/runs/run_1");
  expect(below("/ui")).toBe("/");
  expect(below("/uix")).toBe("/uix");
});
