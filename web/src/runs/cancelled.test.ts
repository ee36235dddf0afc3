import { describe, expect, it } from "vitest";
import { cancelsOf, codeWords, receiptWords, spanOf, tallied } from "./cancelled";
import { FLAG } from "./columns";
import { drawn } from "./bars";
import { type Made, answerOf, forestOf } from "./fixture";
import { whyOf } from "./row-words";
import { type Step, patched } from "./forest";

const by = "cancelled by ci-bot";
const made: Made[] = [
  { state: "cancelled", ended: 50, why: by, receipt: "stopped" },
  { parent: 0, state: "succeeded", ended: 20 },
  { parent: 0, state: "cancelled", ended: 50, why: by, receipt: "still_running", flags: FLAG.codeMayRun },
  { parent: 2, state: "cancelled", ended: 50, why: by },
  { parent: 0, state: "cancelled", ended: 50, why: by, receipt: "unanswered", flags: FLAG.codeMayRun },
  { parent: 0, state: "cancelled", ended: 31, why: "cancelled by ada: lunch" },
];
const stepAt = (index: number) => forestOf(made).steps[index] as Step;

describe("what a cancel did", () => {
  it("brackets what ended in one commit, and says by whom and what agents answered", () => {
    expect(cancelsOf(forestOf(made))).toEqual([{
      at: 50, members: [0, 2, 3, 4], top: 0, text: "by ci-bot, 4 ended in one commit: told 2, stopped 1, still running 1, not known 1",
    }]);
  });
  it("sets a reason apart from the count", () => {
    const two: Made[] = [{ state: "cancelled", ended: 9, why: "cancelled by ada: lunch" }, { parent: 0, state: "cancelled", ended: 9 }];
    expect(cancelsOf(forestOf(two))[0]?.text).toBe("by ada: lunch · 2 ended in one commit");
  });
  it("begins with the member whose caller is none of them", () => {
    const below: Made[] = [{ ended: 90 }, { parent: 0, state: "cancelled", ended: 9 }, { parent: 1, state: "cancelled", ended: 9 }];
    expect(cancelsOf(forestOf(below))[0]?.top).toBe(1);
  });
  it("counts as told only who answered", () => {
    expect(tallied(["stopped", "not_active", "still_running", "not_told", "unanswered", null])).toEqual({ told: 3, stopped: 2, still_running: 1, not_told: 1, unanswered: 1 });
    expect(receiptWords(tallied([null, undefined, "levitating"]))).toBe("");
    expect(receiptWords(tallied(["not_told", "unanswered"]))).toBe("told 0, not known 2");
    expect(receiptWords({ ...tallied(["stopped"]), partial: true })).toBe("told ≥ 1, stopped ≥ 1");
  });
  it("says whose code goes on, first, and draws it", () => {
    expect(codeWords(stepAt(0))).toBeNull();
    expect(whyOf(stepAt(2))).toBe("code still runs · cancelled by ci-bot");
    expect(whyOf(stepAt(4))).toBe("code may still run: its agent has not answered · cancelled by ci-bot");
    expect(drawn(stepAt(2), 99).marks).toContainEqual({ kind: "code_runs", at: 50, text: undefined });
    expect(drawn(stepAt(0), 99).marks.map((mark) => mark.kind)).toEqual(["cancelled"]);
  });
  it("spans the rows that show a member, folded ones too", () => {
    const [cancel] = cancelsOf(forestOf(made));
    const step = (index: number) => ({ kind: "step", index, key: String(index) }) as never;
    const group = { kind: "group", members: [3, 4], key: "g" } as never;
    expect(spanOf(cancel!, [step(1), step(0), step(5), group, step(1)])).toEqual({ first: 1, last: 3 });
    expect(spanOf(cancel!, [step(1)])).toBeNull();
  });
  it("sees that a receipt came", () => {
    const before = forestOf(made);
    const next = patched(before, answerOf(made.map((each, at) => (at === 4 ? { ...each, receipt: "stopped" } : each))));
    expect(next.changed).toEqual([4]);
    expect(cancelsOf(next.forest)[0]?.text).toMatch(/told 3, stopped 2, still running 1$/);
  });
});
