import { expect, it } from "vitest";
import { below, holdPage, match, navigate, path } from "./router";

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
  expect(below(null)).toBe("/");
});
it("a held page asks before it is left, by a link and by Back, and goes when it is told to", () => {
  window.history.replaceState(null, "", "/ui/runs");
  navigate("/settings/keys");
  const asked: (() => void)[] = [];
  const free = holdPage((go) => asked.push(go));
  navigate("/settings/keys?all=1");
  expect(asked.length, "a change of the same page's view is no leaving").toBe(0);
  navigate("/fleet");
  expect(asked.length).toBe(1);
  expect(window.location.pathname).toBe("/ui/settings/keys");
  // Back: the address has changed already when one hears of it.
  window.history.replaceState(null, "", "/ui/runs");
  window.dispatchEvent(new PopStateEvent("popstate"));
  expect(asked.length).toBe(2);
  expect(window.location.pathname).toBe("/ui/settings/keys");
  asked[1]?.();
  expect(window.location.pathname).toBe("/ui/runs");
  navigate("/fleet");
  expect(window.location.pathname, "once left, it is free").toBe("/ui/fleet");
  free();
});
