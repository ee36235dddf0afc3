import { describe, expect, it } from "vitest";
import { byNeed, outlookOf } from "./outlook";
import type { AgentLine } from "./shapes";

const agent = (id: string, changes: Partial<AgentLine> = {}) =>
  ({ id, state: "active", slots: { used: 0, cap: null }, queue: { depth: 0, oldest_at: null }, window: { calls: 0, failed: 0, refused: 0, from: "", refused_from: "" }, ...changes }) as AgentLine;

describe("what a call would meet", () => {
  it("is nothing special where all is well", () => {
    expect(outlookOf(agent("a"), "async")).toBeUndefined();
    expect(outlookOf(agent("a", { slots: { used: 1, cap: 2 } }), "async")).toBeUndefined();
  });

  it("names the refusal, or what it waits for", () => {
    expect(outlookOf(agent("a", { state: "down" }), "async")?.says).toContain("503 node_unavailable");
    expect(outlookOf(agent("a", { pending_tags: ["x"], state: "down" }), "async")?.says).toContain("agent_pending_approval");
    expect(outlookOf(agent("a", { hold: { everything: false, by: null, since: null } }), "async")?.says).toContain("queued");
    expect(outlookOf(agent("a", { hold: { everything: false, by: null, since: null } }), "sync")?.says).toContain("refused when");
    expect(outlookOf(agent("a", { slots: { used: 4, cap: 4 }, queue: { depth: 29, oldest_at: null } }), "async")?.says).toBe("queued: 4 of 4 slots are held, 29 wait");
  });
});

describe("the order of the list", () => {
  it("puts first who needs somebody, then who has work waiting", () => {
    const list = [
      agent("well"), agent("failing", { window: { calls: 3, failed: 1, refused: 0, from: "", refused_from: "" } }), agent("waiting", { queue: { depth: 2, oldest_at: null } }),
      agent("longer", { queue: { depth: 9, oldest_at: null } }), agent("held", { hold: { everything: false, by: null, since: null } }), agent("down", { state: "down" }), agent("asks", { pending_tags: ["x"] }),
      agent("also well"),
    ];
    expect(byNeed(list).map(({ id }) => id)).toEqual(["down", "asks", "held", "longer", "waiting", "failing", "also well", "well"]);
  });
});
