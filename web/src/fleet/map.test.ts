import { describe, expect, it } from "vitest";
import { densityOf, partsOf, roomOf, saidOf, statesOf } from "./map";
import type { FleetNode } from "./shapes";

const node = (changes: Partial<FleetNode>): FleetNode => ({
  id: "node_1", name: "edge-1", kind: "muster", state: "online", state_at: "", evidence: "", flapping: false,
  wish: "active", labels: [], max_workers: 8, version: "", host: null, worker_names: [], drift: false,
  heard_at: null, next: null, load: null, workers: 3, free: 5, ...changes,
});

describe("a node's squares", () => {
  it("shows what an online node confirms as running and free", () => {
    expect(partsOf(node({}))).toEqual([{ kind: "running", count: 3 }, { kind: "free", count: 5 }]);
    expect(roomOf(node({}))).toBe("3/8");
  });
  it("shows nothing as running of a node that is not online", () => {
    expect(partsOf(node({ state: "suspect" }))[0]).toEqual({ kind: "last", count: 3 });
    expect(roomOf(node({ state: "suspect" }))).toBe("3/8 as last known");
  });
  it("draws unknown as unknown: last known hatched, the rest a question, never free, never zero", () => {
    const away = node({ state: "unreachable", workers: null, free: null, workers_last: { value: 5, at: "" } });
    expect(partsOf(away)).toEqual([{ kind: "last", count: 5 }, { kind: "unknown", count: 3 }]);
    expect(roomOf(away)).toBe("? last known 5");
    expect(saidOf(partsOf(away))).toBe("5 as last known, 3 not known");
  });
  it("keeps a question when there is neither a number nor a bound", () => {
    expect(partsOf(node({ workers: null, free: null, max_workers: null }))).toEqual([{ kind: "unknown", count: 1 }]);
    expect(roomOf(node({ workers: null, free: null, max_workers: null }))).toBe("? workers not known");
  });
  it("says zero of a node that is reached and has none", () => {
    expect(roomOf(node({ workers: 0, free: 8 }))).toBe("0/8");
    expect(roomOf(node({ workers: 10, free: 0 }))).toBe("10/8, 2 over its bound");
    expect(saidOf(partsOf(node({ workers: 0, free: null, max_workers: null })))).toBe("no workers");
  });
});

it("chooses the density by the number of nodes", () => {
  expect([60, 61, 400, 401].map(densityOf)).toEqual(["tiles", "dense", "dense", "bars"]);
});

it("lists states worst first and leaves none out that it does not know", () => {
  expect(statesOf({ online: 2, lost: 1, hibernating: 1, suspect: 0 })).toEqual([["hibernating", 1], ["lost", 1], ["online", 2]]);
});
