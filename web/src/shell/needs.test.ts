import { expect, it } from "vitest";
import type { Need, Overview } from "@/api/shapes";
import { bannersOf, countOf, seriousFirst } from "./needs";

const need = (kind: string): Need => ({ kind: kind as Need["kind"], id: kind, state: "x", text: "", since: null, path: "/" });
const overview = (kinds: string[], total = kinds.length) => ({ needs: kinds.map(need), needs_total: total }) as Overview;

it("a place counts what it shows, the overview all", () => {
  const all = overview(["approval", "agent", "agent", "node", "haunting"]);
  expect(countOf(all, "/agents")).toEqual({ count: 2, atLeast: false });
  expect(countOf(all, "/")).toEqual({ count: 5, atLeast: false });
  expect(countOf(all, "/queues").count).toBe(0);
});
it("what was not listed makes a count a lower bound", () => {
  expect(countOf(overview(["agent"], 90), "/agents")).toEqual({ count: 1, atLeast: true });
  expect(countOf(overview(["agent"], 90), "/").count).toBe(90);
});
it("banners come in the order of how serious they are", () => {
  expect(bannersOf(overview(["disk", "agent", "doubt", "hold"])).map((each) => each.kind)).toEqual(["hold", "doubt", "disk"]);
  expect(bannersOf(undefined)).toEqual([]);
  expect(seriousFirst(["node", "disk", "agent", "hold"].map(need)).map((each) => each.kind)).toEqual(["hold", "disk", "node", "agent"]);
});
