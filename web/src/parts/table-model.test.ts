import { describe, expect, it } from "vitest";
import { activeIndex, moved, rowHeight, visibleColumns } from "./table-model";

describe("columns", () => {
  it("leave in order of what they may be missed at", () => {
    const columns = [{ id: "state" }, { id: "took", from: "sm" as const }, { id: "why", from: "lg" as const }];
    const at = (width: number) => visibleColumns(columns, width).map((column) => column.id).join();
    expect(at(390)).toBe("state");
    expect(at(900)).toBe("state,took");
    expect(at(1200)).toBe("state,took,why");
  });
  it("are in a card where they say so", () => {
    const columns = [{ id: "state" }, { id: "steps", from: "sm" as const, card: "line" }, { id: "id", from: "sm" as const }, { id: "x", card: "none" }];
    expect(visibleColumns(columns, 390, true).map((column) => column.id)).toEqual(["state", "steps"]);
  });
});

describe("keys", () => {
  it("move within the list and not out of it", () => {
    expect(moved("j", -1, 3, 10)).toBe(0);
    expect(moved("j", 2, 3, 10)).toBe(2);
    expect(moved("k", 0, 3, 10)).toBe(0);
    expect(moved("End", 0, 100_000, 10)).toBe(99_999);
    expect(moved("PageUp", 99_999, 100_000, 20)).toBe(99_979);
    expect(moved("z", 0, 3, 10)).toBeUndefined();
    expect(moved("j", -1, 0, 10)).toBeUndefined();
  });
});

describe("the active row", () => {
  it("stays with its id when rows come above it", () => {
    expect(activeIndex({ id: "b", index: 1 }, (id) => (id === "b" ? 4 : undefined), 9)).toBe(4);
  });
  it("becomes the next row when its own is gone", () => {
    expect(activeIndex({ id: "b", index: 1 }, () => undefined, 9)).toBe(1);
    expect(activeIndex({ id: "b", index: 8 }, () => undefined, 3)).toBe(2);
  });
});

describe("row heights", () => {
  it("are the same for every row of a kind", () => {
    expect(rowHeight(28, false, false)).toBe(28);
    expect(rowHeight(28, false, true)).toBe(48);
    expect(rowHeight(36, true, true)).toBe(76);
  });
});
