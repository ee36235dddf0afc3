import { describe, expect, it } from "vitest";
import { Problem } from "@/api/problem";
import { type ActState, confirms, next } from "./act-state";

const ready: ActState = { is: "ready" };
const run = (...events: Parameters<typeof next>[1][]) => events.reduce(next, ready);

describe("an act", () => {
  it("shows the consequence before it sends, and the receipt after", () => {
    const asked = run({ event: "open", kind: "ask", key: "k" }, { event: "checked", says: "stops 3", key: "k" });
    expect(asked).toEqual({ is: "confirm", says: "stops 3", key: "k" });
    const sent = next(asked, { event: "go" });
    expect(sent).toMatchObject({ is: "sending", key: "k" });
    expect(next(sent, { event: "ended", says: "stopped 3", partial: false })).toEqual({ is: "done", says: "stopped 3", partial: false });
  });
  it("is one change however often it is clicked", () => {
    const sent = run({ event: "open", kind: "undo", key: "a" });
    expect(next(sent, { event: "open", kind: "undo", key: "b" })).toBe(sent);
    const asked = run({ event: "open", kind: "ask", key: "a" }, { event: "checked", says: "", key: "a" }, { event: "go" });
    expect(next(asked, { event: "go" })).toBe(asked);
  });
  it("asks again with the same key when the answer was lost", () => {
    const lost = run({ event: "open", kind: "undo", key: "a" }, { event: "failed", problem: new Problem("offline", "no answer", 0) });
    expect(lost).toMatchObject({ is: "failed", during: "sending", key: "a" });
    expect(next(lost, { event: "go" })).toEqual({ is: "sending", key: "a" });
  });
  it("does not send when the consequence is not known", () => {
    const refused = run({ event: "open", kind: "wide", key: "a" }, { event: "failed", problem: new Problem("conflict", "ended", 409) });
    expect(refused).toMatchObject({ is: "failed", during: "checking" });
    expect(next(refused, { event: "go" })).toBe(refused);
  });
  it("cannot be closed while it sends", () => {
    const sent = run({ event: "open", kind: "undo", key: "a" });
    expect(next(sent, { event: "keep" })).toBe(sent);
  });
  it("is undone once", () => {
    const done = run({ event: "open", kind: "undo", key: "a" }, { event: "ended", says: "paused", partial: false }, { event: "undo" });
    expect(done.is).toBe("undoing");
    expect(next(done, { event: "undo" })).toBe(done);
  });
});

describe("a typed name", () => {
  it("must be the name", () => {
    expect(confirms(" plan-trip ", "plan-trip")).toBe(true);
    expect(confirms("plan", "plan-trip")).toBe(false);
    expect(confirms("", "")).toBe(false);
  });
});
