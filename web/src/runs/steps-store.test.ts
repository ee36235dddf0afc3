import { afterEach, expect, it, vi } from "vitest";
import { answerOf } from "./fixture";
import { StepsStore } from "./steps-store";

const steps = (many: number) => Array.from({ length: many }, (_, at) => ({ id: `exec_${at}` }));

/** A plane that gives these windows in turn; answers with what it was asked. */
function planeWith(windows: object[]): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", (address: string) => {
    asked.push(new URL(address, "http://plane").searchParams.get("after") ?? "");
    return Promise.resolve(new Response(JSON.stringify(windows[asked.length - 1]), { headers: { "content-type": "application/json" } }));
  });
  return asked;
}
afterEach(() => vi.unstubAllGlobals());

it("reads window after window, and tells of the first and of all", async () => {
  const asked = planeWith([{ ...answerOf(steps(3)), total: 5, next: "three" }, { ...answerOf(steps(2), 3), total: 5 }]);
  const store = new StepsStore("run_1");
  const told: [number, boolean][] = [];
  store.subscribe(() => told.push([store.now().forest.steps.length, store.now().complete]));
  await store.load();
  expect(asked).toEqual(["", "three"]);
  expect(told).toEqual([[3, false], [5, true]]);
});
it("asks for nothing after the last step of a run that is over", async () => {
  const asked = planeWith([{ ...answerOf(steps(3)), state: "succeeded", next: "three" }]);
  const store = new StepsStore("run_1");
  await store.load();
  expect(asked).toEqual([""]);
  expect(store.now().complete).toBe(true);
});
it("asks on where the run goes on: a step may have come meanwhile", async () => {
  const asked = planeWith([{ ...answerOf(steps(3)), state: "running", next: "three" }, { ...answerOf(steps(1), 3), total: 4 }]);
  const store = new StepsStore("run_1");
  await store.load();
  expect(asked).toEqual(["", "three"]);
  expect(store.now().forest.steps).toHaveLength(4);
});
