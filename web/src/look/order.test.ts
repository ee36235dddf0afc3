import { expect, it } from "vitest";
import { kept, misplaced } from "./order";

const idOf = (row: { id: string }) => row.id;
const by = (a: { wait: number }, b: { wait: number }) => b.wait - a.wait;

it("rows stay where they were, new ones come last", () => {
  const rows = [{ id: "c", wait: 9 }, { id: "a", wait: 1 }, { id: "b", wait: 5 }];
  expect(kept(rows, idOf, ["a", "b"]).map(idOf)).toEqual(["a", "b", "c"]);
});
it("counts what another order would move", () => {
  const rows = [{ id: "a", wait: 1 }, { id: "b", wait: 5 }];
  expect(misplaced(rows, idOf, ["b", "a"], by)).toBe(0);
  expect(misplaced(rows, idOf, ["a", "b"], by)).toBe(2);
});
