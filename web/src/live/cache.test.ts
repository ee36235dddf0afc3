import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { keepFresh, touches } from "./cache";
import type { LiveFrame, PlaneEvent } from "./stream";

const event = (kind: string, about: Partial<PlaneEvent> = {}): LiveFrame => ({
  type: "event", event: { id: "1", at: "2026-11-29T18:00:00.000Z", kind, ...about } as PlaneEvent,
});
const key = (route: string, path: object | null = null) => [route, path, null];

describe("an event marks as stale", () => {
  const ended = event("execution.failed", { execution_id: "e1", run_id: "r1", agent: "weather" });
  it("what shows its execution and its run", () => {
    for (const route of ["/api/v1/executions/{id}", "/api/v1/executions/{id}/attempts", "/api/v1/why/{id}"]) {
      expect(touches(ended, key(route, { id: "e1" }))).toBe(true);
      expect(touches(ended, key(route, { id: "e2" }))).toBe(false);
    }
    expect(touches(ended, key("/api/v1/runs/{run}", { run: "r1" }))).toBe(true);
    expect(touches(ended, key("/api/v1/runs/{run}", { run: "r2" }))).toBe(false);
  });
  it("not what its page reads by itself", () => {
    expect(touches(ended, key("/api/v1/runs/{run}/steps", { run: "r1" }))).toBe(false);
    expect(touches(ended, key("/api/v1/executions/{id}/payload/{kind}", { id: "e1", kind: "input" }))).toBe(false);
    expect(touches(ended, key("/api/v1/runs"))).toBe(false);
    expect(touches({ type: "resync", why: "gap" }, key("/api/v1/runs"))).toBe(false);
  });
  it("an agent's page when its instance changed, not with each of its executions", () => {
    expect(touches(ended, key("/api/v1/nodes/{agent}", { agent: "weather" }))).toBe(false);
    expect(touches(event("instance.down", { agent: "weather" }), key("/api/v1/nodes/{agent}", { agent: "weather" }))).toBe(true);
    expect(touches(event("instance.down", { agent: "weather" }), key("/api/v1/nodes"))).toBe(true);
    expect(touches(event("instance.down", { agent: "weather" }), key("/api/v1/fleet"))).toBe(false);
  });
  it("the sums of a slow topic", () => {
    expect(touches({ type: "changed", topic: "summary" }, key("/api/v1/overview"))).toBe(true);
    expect(touches({ type: "changed", topic: "queues" }, key("/api/v1/queues/{agent}", { agent: "a" }))).toBe(true);
    expect(touches({ type: "changed", topic: "queues" }, key("/api/v1/overview"))).toBe(false);
    expect(touches({ type: "changed", topic: "weather" }, key("/api/v1/overview"))).toBe(false);
  });
});

describe("refetches", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it("are four a second at most, however many events come, and the last is not missed", async () => {
    const client = new QueryClient();
    let asked = 0;
    const observer = new QueryObserver(client, { queryKey: key("/api/v1/overview"), queryFn: async () => ++asked, staleTime: Number.POSITIVE_INFINITY });
    const leave = observer.subscribe(() => {});
    await vi.advanceTimersByTimeAsync(0);
    expect(asked).toBe(1);
    let tell: (frame: LiveFrame) => void = () => {};
    const stop = keepFresh(client, (listener) => {
      tell = listener;
      return () => {};
    });
    for (let moment = 0; moment < 100; moment += 1) {
      tell({ type: "changed", topic: "summary" });
      await vi.advanceTimersByTimeAsync(10);
    }
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked).toBeGreaterThanOrEqual(4);
    expect(asked).toBeLessThanOrEqual(6);
    stop();
    leave();
  });

  it("come again for what was asked before the event", async () => {
    const client = new QueryClient();
    let asked = 0;
    const observer = new QueryObserver(client, {
      queryKey: key("/api/v1/overview"),
      queryFn: () => new Promise((answer) => setTimeout(() => answer(++asked), 600)),
      staleTime: Number.POSITIVE_INFINITY,
    });
    const leave = observer.subscribe(() => {});
    let tell: (frame: LiveFrame) => void = () => {};
    const stop = keepFresh(client, (listener) => {
      tell = listener;
      return () => {};
    });
    tell({ type: "changed", topic: "summary" });
    await vi.advanceTimersByTimeAsync(3000);
    expect(asked).toBe(2);
    stop();
    leave();
  });
});
