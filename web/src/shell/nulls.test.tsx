// Every page with answers in which all is null that may be, and with words that nobody knows: none
// throws, none makes a zero or a blank of what is not known, and each unknown word shows itself.
import { act } from "react";
import { type Root, createRoot } from "react-dom/client";
import { QueryClientProvider } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { queries } from "@/api/queries";
import { type How, UNHEARD, answerTo } from "./answers";
import { Shell } from "./shell";

vi.mock("@/live/tab", () => ({ joinLink: () => ({ topics() {}, now() {} }) }));

const PATHS = [
  "/", "/runs", "/runs?v=executions", "/runs/run_1?view=time", "/runs/run_1?view=list", "/runs/run_1?view=list&step=exec_1&tab=why",
  ...["why", "input", "output", "attempts", "logs", "notes", "events", "raw"].map((tab) => `/executions/exec_1?alone=1&tab=${tab}`),
  "/compare?a=run_1&b=run_2", "/agents", "/agents/weather", "/agents/weather?why=1", "/agents/weather/call/lookup", "/fleet", "/fleet?view=table", "/fleet/nodes/edge-1", "/fleet/nodes/edge-1?why=1&workers=all",
  "/fleet/workers/wrk_1", "/queues", "/queues/weather", "/usage", "/usage?by=agent", "/health",
  ...["keys", "nodes", "display", "configuration", "tags", "audit", "about"].map((section) => `/settings/${section}`),
];

let root: Root | undefined;
let asked: string[];

/** One step, of which nothing is known but that it is there. */
const STEPS = {
  as_of: "2026-11-30T08:00:00.000Z", position: "1", run_id: "run_1", state: UNHEARD, total: 1, names: ["a.f"],
  columns: {
    index: [0], id: ["exec_1"], parent: [-1], name: [0], agent: ["a"], state: [UNHEARD], reason: [null], category: [null], created: [1_700_000_000_000], queued: [null], started: [null], ended: [null],
    attempts: [0], flags: [0], replay_of: [null], why: [null], segments: [[]],
  },
};

function answered(how: How) {
  return (input: RequestInfo | URL): Promise<Response> => {
    const address = String(input instanceof Request ? input.url : input).replace(/^https?:\/\/[^/]+/, "");
    asked.push(address);
    const made = /\/steps(\?|$)/.test(address) ? STEPS : answerTo(address, how);
    // Who may nothing is asked for a key in place of what this test is about.
    const answer = address === "/api/v1/session" ? Object.assign(made as object, { scopes: ["admin"] }) : made;
    const body = answer === undefined ? JSON.stringify({ error_category: "not_found", message: "there is no such thing" }) : JSON.stringify(answer);
    return Promise.resolve(new Response(body, { status: answer === undefined ? 404 : 200, headers: { "content-type": "application/json", date: new Date("2026-11-30T08:10:00Z").toUTCString() } }));
  };
}

beforeEach(() => {
  asked = [];
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  for (const [name, value] of [["offsetHeight", 800], ["offsetWidth", 1200], ["clientHeight", 800], ["clientWidth", 1200]] as const) {
    Object.defineProperty(HTMLElement.prototype, name, { configurable: true, get: () => value });
  }
});
afterEach(async () => {
  await act(async () => root?.unmount());
  root = undefined;
  queries.clear();
  vi.unstubAllGlobals();
  document.body.replaceChildren();
});

/** The page's text once nothing of it is loading any more. */
async function shown(path: string, how: How): Promise<{ main: HTMLElement; text: string; errors: string[] }> {
  vi.stubGlobal("fetch", answered(how));
  const errors: string[] = [];
  vi.spyOn(console, "error").mockImplementation((...said: unknown[]) => void errors.push(said.map(String).join(" ").slice(0, 400)));
  window.history.replaceState(null, "", `/ui${path}`);
  const box = document.body.appendChild(document.createElement("div"));
  root = createRoot(box, { onCaughtError: (error) => void errors.push(String(error)), onUncaughtError: (error) => void errors.push(String(error)) });
  await act(async () => root?.render(<QueryClientProvider client={queries}><Shell /></QueryClientProvider>));
  await vi.waitFor(async () => {
    await act(async () => new Promise((done) => setTimeout(done, 20)));
    if (!box.querySelector("main h1, main form, main [role=alert], main [role=status]") || box.querySelector("[role=status][aria-label^=loading]") || queries.isFetching() > 0) throw new Error(`still loading: ${[...box.querySelectorAll("[role=status]")].map((each) => each.getAttribute("aria-label")).join()} ${queries.isFetching()} ${box.textContent?.slice(0, 300)}`);
  }, { timeout: 4_000, interval: 20 });
  const main = box.querySelector("main") as HTMLElement;
  return { main, text: main.textContent ?? "", errors: errors.filter((each) => !/not wrapped in act|not configured to support act/.test(each)) };
}

describe.each(["nulls", "whole"] as const)("with answers of %s", (how) => {
  it.each(PATHS)("%s", async (path) => {
    const { main, text, errors } = await shown(path, how);
    expect(errors, "nothing throws").toEqual([]);
    expect(main.querySelector("[role=alert]")?.textContent ?? "", "no panel is broken").not.toMatch(/internal_error/);
    expect(text, "no value of the code's own shows").not.toMatch(/undefined|NaN|\[object |Invalid Date|\bnull\b(?!\s*give)/);
    for (const mark of main.querySelectorAll<HTMLElement>(".state-mark")) {
      expect(mark.title, "a state has a word").not.toBe("");
      if (mark.dataset.state === UNHEARD) expect(mark.title, "a word that nobody knows shows itself").toContain(`other(${UNHEARD})`);
    }
    for (const cell of main.querySelectorAll("[role=gridcell], td, dd")) {
      const said = (cell.textContent ?? "") + [...cell.querySelectorAll("[aria-label], [title], input, svg, span[style], [aria-hidden]")].map((each) => each.tagName).join("");
      // Whatever is there is seven: a zero is one of the page's own making. A run's first step began at 0.
      if (!/\+0|00Z|:00/.test(cell.getAttribute("title") ?? "")) expect(cell.textContent?.trim(), "a zero for what is not known").not.toBe("0");
      if (!cell.hasAttribute("colspan")) expect(said, `a blank in ${cell.closest("[role=row], tr, dl")?.textContent?.slice(0, 80)}`).not.toBe("");
    }
  });
});

describe.each(["broken", "hollow"] as const)("with null for everything but ids, names, states and counts, whatever the schema says: %s", (how) => {
  it.each(PATHS)("%s", async (path) => {
    const { main, text, errors } = await shown(path, how);
    expect(errors, "nothing throws").toEqual([]);
    expect(main.querySelector("h1, form")?.textContent ?? "", "the page has its title").not.toBe("");
    expect(main.querySelector("[role=alert]")?.textContent ?? "", "no panel is broken").not.toMatch(/internal_error/);
    expect(text, "no value of the code's own shows").not.toMatch(/undefined|NaN|\[object |Invalid Date/);
  });
});
