import { expect, it } from "vitest";
import { messageOf } from "./why";

const ended = (message: string | null) => ({ verdict: "a.f failed after 1 s: agent_error", execution: { error_message: message } }) as Parameters<typeof messageOf>[0];

it("what an execution ended with is said, once", () => {
  expect(messageOf(ended("'city'"))).toBe("'city'");
  expect(messageOf(ended("agent_error")), "the sentence has it").toBeNull();
  expect(messageOf(ended(null))).toBeNull();
  expect(messageOf({ verdict: "x" } as Parameters<typeof messageOf>[0])).toBeNull();
});
