import { expect, it } from "vitest";
import { placeLabel } from "./label";

const words = { full: "agent_error: KeyError 'city', 1.52 s", brief: "1.52 s" };

it("stands behind the bar where there is room, else before it", () => {
  expect(placeLabel(words, { start: 10, end: 50 }, 800)).toMatchObject({ text: words.full, align: "start", left: 50 });
  expect(placeLabel(words, { start: 700, end: 780 }, 800)).toMatchObject({ text: words.full, align: "end" });
});
it("is cut only where enough is left, else it is the short part", () => {
  expect(placeLabel(words, { start: 20, end: 200 }, 400)).toMatchObject({ text: words.full });
  expect(placeLabel(words, { start: 60, end: 130 }, 200)).toMatchObject({ text: words.brief, align: "start" });
  expect(placeLabel(words, { start: 70, end: 180 }, 200)).toMatchObject({ text: words.brief, align: "end" });
});
it("is nothing rather than a letter or two", () => {
  expect(placeLabel(words, { start: 20, end: 190 }, 200)).toBeNull();
  expect(placeLabel(words, { start: 900, end: 950 }, 200)).toBeNull();
  expect(placeLabel(words, { start: -90, end: -5 }, 200)).toBeNull();
});
it("keeps room for its button", () => {
  expect(placeLabel(words, { start: 100, end: 190 }, 200, 64)).toMatchObject({ text: "", align: "end" });
  expect(placeLabel(words, { start: 160, end: 190 }, 200, 64)).toMatchObject({ text: words.brief, align: "end" });
});
