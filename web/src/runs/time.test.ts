// Time: the critical path, the axis with its breaks, the bars of a step.
import { describe, expect, it } from "vitest";
import { axisOf, boundsOf, endWithRoom, moved, placeOf, ticksOf, timeAt, union, viewOf, without, workOf, writeView, zoomed } from "./axis";
import { buckets, drawn } from "./bars";
import { FLAG } from "./columns";
import { criticalPath } from "./critical";
import { forestOf, random, randomSteps } from "./fixture";

describe("the critical path", () => {
  it("goes back from the end through whoever ended last", () => {
    // root 0–100 calls a 10–40, then b 40–90 beside c 45–60; b calls d 50–90.
    const forest = forestOf([
      { created: 0, ended: 100 }, { parent: 0, created: 10, ended: 40 }, { parent: 0, created: 40, ended: 90 },
      { parent: 0, created: 45, ended: 60 }, { parent: 2, created: 50, ended: 90 },
    ]);
    const { steps, stretches } = criticalPath(forest, 0);
    expect([...steps].sort()).toEqual([0, 1, 2, 4]);
    expect(stretches).toEqual([
      { index: 0, from: 0, to: 10 }, { index: 1, from: 10, to: 40 }, { index: 2, from: 40, to: 50 },
      { index: 4, from: 50, to: 90 }, { index: 0, from: 90, to: 100 },
    ]);
  });

  it("leaves out what was reused, and a detached member that goes on", () => {
    const forest = forestOf([
      { created: 0, ended: 50 }, { parent: 0, created: 5, ended: 49, flags: FLAG.replayed, replayOf: "exec_x" },
      { parent: 0, created: 5, ended: null, flags: FLAG.detached },
    ]);
    expect([...criticalPath(forest, 500).steps]).toEqual([0]);
  });

  it("is the chain so far while the run goes on", () => {
    const forest = forestOf([{ created: 0, ended: null }, { parent: 0, created: 5, ended: 20 }, { parent: 0, created: 20, ended: null, state: "waiting" }]);
    expect([...criticalPath(forest, 300).steps].sort()).toEqual([0, 1, 2]);
  });

  it.each(Array.from({ length: 10 }, (_, seed) => [seed]))("covers the time from beginning to end without overlap (seed %i)", (seed) => {
    const forest = forestOf(randomSteps(seed, 120).map((step) => ({ ...step, state: "succeeded", ended: step.ended ?? (step.created ?? 0) + 30 })));
    const root = forest.steps[0];
    const { stretches } = criticalPath(forest, 10_000);
    let at = root?.created ?? 0;
    for (const stretch of stretches) {
      expect(stretch.from).toBe(at);
      expect(stretch.to).toBeGreaterThanOrEqual(stretch.from);
      at = stretch.to;
    }
    expect(at).toBe(root?.ended);
  });
});

describe("spans", () => {
  it("join, and leave out holes", () => {
    expect(union([[5, 7], [1, 3], [2, 4], [7, 9], [8, 8]])).toEqual([[1, 4], [5, 9]]);
    expect(without([[0, 10], [20, 30]], [[2, 4], [8, 22], [29, 40]])).toEqual([[0, 2], [4, 8], [22, 29]]);
    expect(without([[0, 10]], [])).toEqual([[0, 10]]);
  });
  it.each(Array.from({ length: 10 }, (_, seed) => [seed]))("cut exactly (seed %i)", (seed) => {
    const next = random(seed);
    const spans = () => union(Array.from({ length: 12 }, (): [number, number] => {
      const from = Math.floor(next() * 100);
      return [from, from + Math.floor(next() * 12)];
    }));
    const a = spans();
    const b = spans();
    const inside = (all: [number, number][], at: number) => all.some(([from, to]) => at >= from && at < to);
    const left = without(a, b);
    const times = Array.from({ length: 120 }, (_, at) => at + 0.5);
    expect(times.map((at) => inside(left, at))).toEqual(times.map((at) => inside(a, at) && !inside(b, at)));
  });
});

describe("the axis", () => {
  it("breaks where a person was waited for, not where work was done", () => {
    const forest = forestOf([
      { created: 0, ended: 1000, segments: [["running", 0, 1000]] },
      { parent: 0, created: 10, ended: 950, segments: [["running", 10, 20], ["waiting_person", 20, 940], ["running", 940, 950]] },
    ]);
    const work = workOf(forest, 1000);
    expect(work).toEqual([[0, 20], [940, 1000]]);
    const axis = axisOf([0, 1000], work, 1000, new Set());
    expect(axis.pieces.map((piece) => [piece.from, piece.to, piece.broken])).toEqual([[0, 20, false], [20, 940, true], [940, 1000, false]]);
    expect(placeOf(axis, 480) - placeOf(axis, 20)).toBeCloseTo(0.04, 5);
    expect(axisOf([0, 1000], work, 1000, new Set([20])).pieces).toHaveLength(1);
  });

  it("does not shorten what has not happened yet", () => {
    const axis = axisOf([0, 3000], [[0, 1000]], 1000, new Set());
    expect(axis.pieces.some((piece) => piece.broken)).toBe(false);
  });

  it("grows in steps, and stands still between them", () => {
    const forest = forestOf([{ created: 0, ended: null }]);
    const at = (now: number, before: [number, number] | null) => boundsOf(forest, workOf(forest, now), now, before);
    const first = at(2000, null);
    expect(first).toEqual([0, 3000]);
    expect(at(2900, first)).toBe(first);
    expect(at(3000, first)).toEqual([0, 4500]);
    expect(boundsOf(forestOf([{ created: 0, ended: 2500 }]), [], 9000, first)).toEqual([0, 2500]);
  });

  it("ends now while only a person is waited for, and nothing moves meanwhile", () => {
    const forest = forestOf([{ created: 0, ended: null, state: "waiting", segments: [["running", 0, 100], ["waiting_person", 100, null]] }]);
    const at = (now: number) => {
      const work = workOf(forest, now);
      return axisOf(boundsOf(forest, work, now, null), work, now, new Set());
    };
    expect(at(90_000).pieces.map((piece) => piece.broken)).toEqual([false, true]);
    expect(placeOf(at(90_000), 100)).toBeCloseTo(placeOf(at(900_000), 100), 9);
  });

  it.each(Array.from({ length: 10 }, (_, seed) => [seed]))("maps there and back, and never backwards (seed %i)", (seed) => {
    const forest = forestOf(randomSteps(seed, 60).map((step, n) => ({ ...step, created: (step.created ?? 0) + (n > 30 ? 5000 : 0), ended: (step.created ?? 0) + (n > 30 ? 5100 : 100) })));
    const bounds = boundsOf(forest, workOf(forest, 6000), 6000, null);
    const axis = axisOf(bounds, workOf(forest, 6000), 6000, new Set());
    const times = Array.from({ length: 201 }, (_, part) => bounds[0] + ((bounds[1] - bounds[0]) * part) / 200);
    const places = times.map((time) => placeOf(axis, time));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(times.filter((time, at) => Math.abs(timeAt(axis, places[at] ?? -1) - time) > 0.01)).toEqual([]);
    expect(places[0]).toBe(0);
    expect(places.at(-1)).toBeCloseTo(1, 9);
  });

  it("is labelled at round times, within what is in sight", () => {
    const axis = axisOf([5000, 15_000], [[5000, 15_000]], 15_000, new Set());
    expect(ticksOf(axis, { a: 0, b: 1 }, 5)).toEqual([0, 2000, 4000, 6000, 8000, 10_000]);
    expect(ticksOf(axis, { a: 0.5, b: 0.6 }, 5)).toEqual([5000, 5200, 5400, 5600, 5800, 6000]);
  });

  it("zooms and moves within its ends, and the address carries it", () => {
    expect(zoomed({ a: 0, b: 1 }, 2)).toEqual({ a: 0.25, b: 0.75 });
    expect(zoomed({ a: 0.25, b: 0.75 }, 0.1)).toEqual({ a: 0, b: 1 });
    expect(moved({ a: 0.5, b: 0.75 }, 10)).toEqual({ a: 0.75, b: 1 });
    expect(viewOf(writeView({ a: 0.25, b: 0.5 }))).toEqual({ a: 0.25, b: 0.5 });
    for (const nonsense of ["", "x", "0.5", "0.9-0.1", "-1-2", "NaN-NaN"]) expect(viewOf(nonsense)).toEqual({ a: 0, b: 1 });
  });
});

describe("the bars of a step", () => {
  const one = (made: Parameters<typeof forestOf>[0][number], now = 100) => drawn(forestOf([made]).steps[0]!, now);

  it("draw stored stretches, and what none covers as unknown", () => {
    expect(one({ created: 0, ended: 100, segments: [["queued", 0, 20], ["running", 50, 90]] }).bars).toEqual([
      { kind: "queued", from: 0, to: 20, open: false }, { kind: "unknown", from: 20, to: 50, open: false },
      { kind: "running", from: 50, to: 90, open: false }, { kind: "unknown", from: 90, to: 100, open: false },
    ]);
  });
  it("go on while the step does", () => {
    expect(one({ created: 0, ended: null, segments: [["absorbed", 5, null]] }, 80).bars.at(-1)).toEqual({ kind: "absorbed", from: 5, to: 80, open: true });
  });
  it("a word nobody knows is unknown, not dropped", () => {
    expect(one({ created: 0, ended: 10, segments: [["levitating" as "running", 0, 10]] }).bars).toEqual([{ kind: "unknown", from: 0, to: 10, open: false }]);
  });
  it.each([
    ["reused", { flags: FLAG.replayed, replayOf: "exec_1" }],
    ["absorbed", { segments: [["absorbed", 0, 5], ["running", 5, 10]] as ["absorbed" | "running", number, number][] }],
    ["doubt", { state: "failed", flags: FLAG.stoppedKnowing }],
    ["timeout", { state: "timeout" }],
    ["cancelled", { state: "cancelled" }],
    ["late", { flags: FLAG.lateOutcome }],
    ["over_cap", { flags: FLAG.overCap }],
    ["decided", { segments: [["waiting_person", 0, 9], ["running", 9, 10]] as ["waiting_person" | "running", number, number][] }],
    ["attempt", { attempts: 2 }],
    ["detached", { flags: FLAG.detached }],
    ["inferred", { flags: FLAG.observed | FLAG.inferredEnd }],
  ] as const)("are marked %s", (kind, made) => {
    expect(one({ created: 0, ended: 10, ...(made as object) }).marks.map((mark) => mark.kind)).toContain(kind);
  });
  it("a step that was reused has no length", () => {
    expect(one({ created: 0, ended: 10, flags: FLAG.replayed, replayOf: "exec_1" }).bars).toEqual([]);
  });
});

describe("a group's density", () => {
  it("counts what goes on at once, and keeps a failure in sight", () => {
    const forest = forestOf([{ created: 0, ended: 50 }, { created: 0, ended: 100 }, { created: 60, ended: 70, state: "failed" }]);
    const found = buckets(forest.steps, 10, (time) => time / 100, 100);
    expect(found.map((bucket) => bucket?.active ?? 0)).toEqual([2, 2, 2, 2, 2, 2, 2, 2, 1, 1]);
    expect(found.map((bucket) => bucket?.worst)[7]).toBe("fail");
    expect(found.map((bucket) => bucket?.worst)[0]).toBe("ok");
  });
});

it("has room for marks behind its end by what is drawn, not by an hour of waiting", () => {
  const [hour, none] = [3_600_000, new Set<number>()];
  const work: [number, number][] = [[0, 3_000], [hour, hour + 1_000]];
  const end = hour + 1_000;
  const to = endWithRoom([0, end], work, end, none, 0.05);
  expect(to - end).toBeCloseTo(200, 0);
  const axis = axisOf([0, to], work, end, none);
  expect(1 - placeOf(axis, end), "the room is narrow").toBeLessThan(0.06);
  // Without a break it is a share of the whole.
  expect(endWithRoom([0, 1_000], [[0, 1_000]], 1_000, none, 0.05)).toBeCloseTo(1_050);
});
