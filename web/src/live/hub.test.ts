import { expect, it, vi } from "vitest";
import type { LinkState, ToTab } from "./frames";
import { TAB_GONE_MS, openHub } from "./hub";

function hub() {
  const topics: string[][] = [];
  const told: ToTab[] = [];
  let time = 0;
  let state: (state: LinkState) => void = () => {};
  const now = vi.fn();
  const made = openHub(
    (message) => told.push(message),
    (events) => {
      state = events.state;
      return { topics: (next) => topics.push([...next]), now, close() {} };
    },
    () => time,
  );
  const say = (from: string, wanted: string[]) => made.hear({ to: "hub", from, is: "topics", topics: wanted });
  return { made, topics, told, say, now, pass: (ms: number) => (time += ms), state: (next: LinkState) => state(next) };
}

it("asks the plane for what any tab shows, once", () => {
  const { say, topics } = hub();
  say("a", ["runs", "summary"]);
  say("b", ["summary", "run:1"]);
  expect(topics.at(-1)).toEqual(["run:1", "runs", "summary"]);
  say("a", []);
  expect(topics.at(-1)).toEqual(["run:1", "summary"]);
});

it("forgets a tab that says goodbye, and one that fell silent", () => {
  const { made, say, topics, pass } = hub();
  say("a", ["runs"]);
  say("b", ["fleet"]);
  made.hear({ to: "hub", from: "a", is: "bye" });
  expect(topics.at(-1)).toEqual(["fleet"]);
  say("c", ["queues"]);
  pass(TAB_GONE_MS - 1);
  made.hear({ to: "hub", from: "c", is: "alive" });
  pass(2);
  say("c", ["queues"]);
  expect(topics.at(-1)).toEqual(["queues"]);
});

it("asks a tab that it does not know for its topics", () => {
  const { made, told } = hub();
  made.hear({ to: "hub", from: "ghost", is: "alive" });
  expect(told).toEqual([{ to: "tab", is: "lead" }]);
});

it("tells a new tab how things stand", () => {
  const { say, told, state } = hub();
  say("a", ["runs"]);
  state({ state: "offline", since: 5, lastFrame: 1 });
  told.length = 0;
  say("b", ["runs"]);
  expect(told).toEqual([{ to: "tab", is: "state", state: { state: "offline", since: 5, lastFrame: 1 } }]);
});
