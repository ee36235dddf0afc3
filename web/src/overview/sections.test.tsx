// @vitest-environment happy-dom
// What keeps its place on the overview while numbers come and go. How it looks is the browser's affair.
import { afterEach, expect, it } from "vitest";
import { flushSync } from "react-dom";
import { type Root, createRoot } from "react-dom/client";
import type { Overview } from "@/api/shapes";
import { Flow, HeldUp } from "./sections";

let root: Root | undefined;
afterEach(() => {
  root?.unmount();
  document.body.replaceChildren();
});

function drawn(): { box: HTMLElement; draw: (what: React.ReactNode) => void } {
  const box = document.body.appendChild(document.createElement("div"));
  root = createRoot(box);
  return { box, draw: (what) => flushSync(() => root?.render(what)) };
}

const FLOW: Overview["flow"] = { bucket_ms: 60_000, from: "2026-11-30T12:00:00Z", started: [null, null, 5], ended: [null, null, 4], started_per_min: null, ended_per_min: null, open: 0, oldest_wait_ms: null };
const cause = (name: string, count: number) => ({ cause: name, state: "queued", text: `${name} of weather`, count, oldest_at: null, query: "status=queued" }) as Overview["held"]["causes"][number];
const held = (...causes: Overview["held"]["causes"]) => ({ total: causes.reduce((sum, each) => sum + each.count, 0), causes }) as Overview["held"];

it("gives each number of the flow the same room, known or not", () => {
  const { box, draw } = drawn();
  const rooms = () => [...box.querySelectorAll<HTMLElement>(".room")].map((each) => each.style.minWidth);
  draw(<Flow flow={FLOW} />);
  const unknown = rooms();
  expect(box.textContent).toContain("nothing waits");
  draw(<Flow flow={{ ...FLOW, started: [2, 267, 129], ended: [2, 267, 129], started_per_min: 202, ended_per_min: 202, open: 8, oldest_wait_ms: 1_200 }} />);
  expect(box.textContent).toContain("267/min");
  expect(box.textContent).toContain("1.20 s");
  expect(rooms()).toEqual(unknown);
  expect(unknown.length, "each number has its room").toBe(6);
});

it("is silent about what is held up until something is, and keeps its place then", () => {
  const { box, draw } = drawn();
  draw(<HeldUp held={held()} />);
  expect(box.textContent).toBe("");
  draw(<HeldUp held={held(cause("agent_full", 3))} />);
  expect(box.querySelectorAll(".chip")).toHaveLength(1);
  draw(<HeldUp held={held()} />);
  expect(box.querySelectorAll(".chip")).toHaveLength(0);
  expect(box.textContent).toContain("Nothing is held up now.");
});

it("leaves a cause where it was when another outgrows it", () => {
  const { box, draw } = drawn();
  const order = () => [...box.querySelectorAll(".chip")].map((each) => each.textContent?.match(/(agent_full|paused) of/)?.[1]);
  draw(<HeldUp held={held(cause("agent_full", 3), cause("paused", 1))} />);
  expect(order()).toEqual(["agent_full", "paused"]);
  draw(<HeldUp held={held(cause("paused", 9), cause("agent_full", 2))} />);
  expect(order()).toEqual(["agent_full", "paused"]);
});
