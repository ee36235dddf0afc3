import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { NO_REASON, agentActs, hold } from "./acts";
import type { AgentLine } from "./shapes";

let sent: { path: string; body: unknown }[];
beforeEach(() => {
  sent = [];
  vi.stubGlobal("fetch", async (address: string, init?: RequestInit) => {
    sent.push({ path: address, body: JSON.parse(String(init?.body)) });
    return new Response("{}", { status: 200 });
  });
});
afterEach(() => vi.unstubAllGlobals());

const agent = (changes: object = {}) => ({ id: "mail", state: "active", slots: { used: 0, cap: null }, queue: { depth: 0 }, ...changes }) as unknown as AgentLine;

it("holds at once, without a question, and takes it back", async () => {
  const act = hold(agent());
  expect(act.kind).toBe("undo");
  await act.run("k1");
  await act.undo?.("k2");
  expect(sent).toEqual([
    { path: "/api/v1/hold", body: { agent: "mail", reason: NO_REASON } },
    { path: "/api/v1/unhold", body: { agent: "mail" } },
  ]);
});
it("the reason of a hold is said afterwards, and not of the hold over everything", () => {
  const names = (hold?: object) => agentActs(agent({ hold })).map((act) => act.name);
  expect(names()).toEqual(["hold", "cap"]);
  expect(names({ everything: false, reason: NO_REASON })).toEqual(["unhold", "say_why", "cap"]);
  expect(names({ everything: true, reason: "moving" })).toEqual(["unhold", "cap"]);
});
it("no empty reason is sent", async () => {
  const act = agentActs(agent({ hold: { everything: false, reason: "" } })).find((each) => each.name === "say_why");
  await expect(act?.run("k")).rejects.toThrow("few words");
  expect(sent).toEqual([]);
});
