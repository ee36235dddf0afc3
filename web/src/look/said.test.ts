import { expect, it } from "vitest";
import { docWords, placeOfId, saidPieces, saidShort } from "./said";

const ID = "exec_01M8NT7F1PEQN8S8EAYKZC1YAE";

it("ids and times are found, and every word stays", () => {
  const text = `trip.plan waits for ${ID}, asked at 2026-11-30T08:48:00.601Z`;
  expect(saidPieces(text).map((piece) => piece.is)).toEqual(["text", "id", "text", "time"]);
  expect(saidPieces(text).map((piece) => piece.text).join("")).toBe(text);
});
it("a short sentence has short ids and the reader's clock", () => {
  const now = Date.parse("2026-11-30T09:00:00Z");
  expect(saidShort(`waits for ${ID} since 2026-11-30T08:48:00.601Z`, "utc", now)).toBe("waits for exec_…ZC1YAE since 08:48:00\u202fUTC");
});
it("what only looks like one is left alone", () => {
  for (const text of ["exec_short", "x2026-11-30", `pre${ID}`, "budget-Lyon-3a81f6"]) expect(saidPieces(text)).toEqual([{ is: "text", text }]);
});
it("an id leads to its page", () => {
  expect(placeOfId("wrk", "wrk_1")).toBe("/fleet/workers/wrk_1");
  expect(placeOfId("exec", ID)).toBe(`/executions/${ID}`);
});
it("where a rule is written reads as words", () => {
  expect(docWords("docs/contract.md#people-in-the-loop")).toBe("docs/contract.md, “people in the loop”");
  expect(docWords("docs/fleet.md")).toBe("docs/fleet.md");
});
