// @vitest-environment happy-dom
import { expect, it } from "vitest";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { HeldWords, holdOf } from "./held";

function text(hold: Parameters<typeof HeldWords>[0]["hold"]): string {
  const box = document.createElement("div");
  const root = createRoot(box);
  flushSync(() => root.render(<HeldWords hold={hold} />));
  const said = box.textContent ?? "";
  root.unmount();
  return said;
}

it("says who, since when and why", () => {
  expect(text({ by: "ada", since: new Date(Date.now() - 7_260_000).toISOString(), reason: "deploy" })).toMatch(/^by ada for 2 h \d+ m: deploy$/);
});
it("says why it is not known by whom and since when", () => {
  const said = text({ by: null, since: null, by_unknown: "an older build held it" });
  expect(said.match(/— unknown: an older build held it/g)).toHaveLength(2);
});
it("takes everything's hold before an agent's own", () => {
  const own = { agent: "report", by: "ci" };
  expect(holdOf({ held: true, by: "ada", held_agents: [own] }, "report")?.by).toBe("ada");
  expect(holdOf({ held: false, held_agents: [own] }, "report")?.by).toBe("ci");
  expect(holdOf({ held: false, held_agents: [own] }, "weather")).toBeUndefined();
});
