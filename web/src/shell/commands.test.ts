import { expect, it } from "vitest";
import { commandOf } from "./commands";

it("every page about one thing has its command", () => {
  expect(commandOf("/runs/run_01M8NT7AX7EE1B955XH9TC58TY")).toBe("muster runs show run_…TC58TY");
  expect(commandOf("/executions/exec_01M8NT7F1PEQN8S8EAYKZC1YAE?tab=why")).toBe("muster executions show exec_…ZC1YAE");
  expect(commandOf("/agents/weather")).toBe("muster agents show weather");
  expect(commandOf("/agents/weather/call/lookup")).toBe("muster call weather.lookup --input '{}'");
  expect(commandOf("/fleet/nodes/edge-1")).toBe("muster nodes show edge-1");
  expect(commandOf("/fleet/workers/wrk_01M8NT3541EYERA7S89XZ6ESGT/terminal")).toBe("muster attach wrk_…Z6ESGT");
  expect(commandOf("/queues/weather")).toBe("muster queues show weather");
  expect(commandOf("/compare?a=x&b=y")).toBe("muster compare x y");
});
it("a place without a thing, and a broken address, have none", () => {
  for (const path of ["/runs", "/compare", "/compare?a=x", "/agents/%E0%A4%A", "/settings/keys"]) expect(commandOf(path)).toBeUndefined();
});
