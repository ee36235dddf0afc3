import { expect, it } from "vitest";
import { askOf, listLink } from "./address";

it("a count's link shows what was counted", () => {
  const link = listLink("status=failed,timeout&category=agent_error&since=2026-11-29T17:00:00.000Z");
  expect(link.startsWith("/runs?")).toBe(true);
  const address = new URLSearchParams(link.split("?")[1]);
  expect(Object.fromEntries(address)).toEqual({ v: "executions", state: "failed,timeout", category: "agent_error", t: "2026-11-29T17:00:00.000Z.." });
  expect(askOf(address, { since: "2026-11-29T17:00:00.000Z" })).toEqual({ status: "failed,timeout", category: "agent_error", since: "2026-11-29T17:00:00.000Z" });
});
it("names of many agents, and words with odd letters, survive", () => {
  expect(askOf(new URLSearchParams(listLink("status=queued&agent=a,b&function=x%26y").split("?")[1]), {})).toEqual({ status: "queued", agent: "a,b", function: "x&y" });
  expect(listLink("", "runs")).toBe("/runs");
});
