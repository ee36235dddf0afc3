import { describe, expect, it } from "vitest";
import { factsOf } from "./facts";
import type { NodeWhole } from "./shapes";

const node = (changes: Partial<NodeWhole>): NodeWhole => ({
  id: "node_1", name: "edge-1", kind: "muster", state: "online", state_at: "", evidence: "", flapping: false, wish: "active",
  labels: [], max_workers: 8, version: "", host: "vm", worker_names: [], drift: false, heard_at: "2026-01-01T00:00:00Z", next: null,
  load: 1, workers: 0, free: 8, capabilities: [], epoch: null, principal: "owner", enrolled_at: "", as_of: "", position: "", connected_at: "2026-01-01T00:00:00Z",
  disconnected: null, beat: null, inventory: null, goodbye: null, lost: null, wished: null, link: 1, beat_interval_ms: 5000,
  beats_missed: 0, late_frames: 0, facts: [], ...changes,
});
const row = (rows: ReturnType<typeof factsOf>, fact: string) => rows.find((each) => each.fact === fact);

describe("facts of a node", () => {
  it("keeps the plane's facts in their order and adds what never came with its reason", () => {
    const rows = factsOf(node({ facts: [{ what: "beat", at: "2026-01-01T00:00:00Z", by: "node", text: "claimed 5 workers" }] }));
    expect(rows[0]).toMatchObject({ fact: "beat", says: "claimed 5 workers", from: "node" });
    expect(row(rows, "inventory")).toMatchObject({ at: null, missing: "connected, none came yet" });
    expect(row(rows, "goodbye")?.missing).toBe("none since it connected");
  });
  it("says of a broker what it does not report, and never a number", () => {
    const rows = factsOf(node({ kind: "relay", load: null, load_reason: "not_reported_by_node", host: null }));
    for (const fact of ["pids", "exit codes", "host", "load"]) {
      expect(row(rows, fact), fact).toMatchObject({ at: null, says: null, missing: "not reported by node" });
    }
  });
  it("says of one that never connected that it did not", () => {
    expect(row(factsOf(node({ connected_at: null, link: null })), "last frame")?.missing).toBe("never connected");
  });
});
