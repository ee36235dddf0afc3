import { describe, expect, it } from "vitest";
import { readAgent } from "./offers";

describe("what an agent offers", () => {
  it("keeps schemas as they were written", () => {
    const { agent, offers } = readAgent(
      '{"id":"a","node_id":"a","offers":[{"id":"f","type":"reasoner","target":"a.f","description":"does \\"f\\"","tags":["x"],"input_schema":{"type":"object","properties":{"n":{"default":9223372036854775807}}},"output_schema":null},{"id":"g","type":"skill","target":"a.g","tags":[]}]}',
    );
    expect(agent.id).toBe("a");
    expect(offers).toEqual([
      { id: "f", type: "reasoner", description: 'does "f"', tags: ["x"], input: '{"type":"object","properties":{"n":{"default":9223372036854775807}}}', output: undefined },
      { id: "g", type: "skill", description: undefined, tags: [], input: undefined, output: undefined },
    ]);
  });
});
