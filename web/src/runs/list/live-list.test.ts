import { describe, expect, it } from "vitest";
import { begun, concerned, extended, refreshed, shown } from "./live-list";

type Row = { id: string; state: string };
const idOf = (row: Row) => row.id;
const rows = (text: string, state = "running"): Row[] => text.split("").map((id) => ({ id, state }));
const ids = (list: ReturnType<typeof begun<Row>>) => shown(list).map(idOf).join("");

describe("a live list", () => {
  it("changes rows in place and lets new ones wait", () => {
    const list = begun({ rows: rows("cba"), next: "n1" }, idOf);
    const after = refreshed(list, undefined, { rows: [...rows("ed"), { id: "c", state: "failed" }], next: "n0" }, idOf);
    expect(ids(after)).toBe("cba");
    expect(shown(after)[0]?.state).toBe("failed");
    expect([...after.fresh]).toEqual(["e", "d"]);
    expect(after.dimmed.size).toBe(0);
  });
  it("dims what is found no more, and not what new rows pushed off the page", () => {
    const list = begun({ rows: rows("dcba"), next: "n1" }, idOf);
    const after = refreshed(list, undefined, { rows: rows("edb"), next: "n2" }, idOf);
    expect([...after.dimmed]).toEqual(["c"]);
    expect(ids(after)).toBe("dcba");
  });
  it("dims everything that is gone when the page is the last one", () => {
    const list = begun({ rows: rows("cba") }, idOf);
    expect([...refreshed(list, undefined, { rows: rows("b") }, idOf).dimmed]).toEqual(["c", "a"]);
    expect([...refreshed(list, undefined, { rows: [] }, idOf).dimmed]).toEqual(["c", "b", "a"]);
  });
  it("brings back what matches again", () => {
    const list = refreshed(begun({ rows: rows("ba") }, idOf), undefined, { rows: rows("a") }, idOf);
    expect([...list.dimmed]).toEqual(["b"]);
    expect(refreshed(list, undefined, { rows: rows("ba") }, idOf).dimmed.size).toBe(0);
  });
  it("grows at its end, without a row twice", () => {
    const list = extended(begun({ rows: rows("cb"), next: "n1" }, idOf), "n1", { rows: rows("ba"), next: undefined }, idOf);
    expect(ids(list)).toBe("cba");
    expect(extended(list, "n1", { rows: rows("z") }, idOf)).toBe(list);
  });
  it("refreshes a later page without asking for new rows of it", () => {
    const list = extended(begun({ rows: rows("cb"), next: "n1" }, idOf), "n1", { rows: rows("a") }, idOf);
    const after = refreshed(list, "n1", { rows: [{ id: "a", state: "failed" }, { id: "0", state: "queued" }] }, idOf);
    expect(ids(after)).toBe("cba");
    expect(shown(after)[2]?.state).toBe("failed");
    expect(after.fresh.size).toBe(0);
  });
  it("says that a first page of nothing but new rows is not all of them", () => {
    const list = begun({ rows: rows("cba"), next: "n1" }, idOf);
    expect(refreshed(list, undefined, { rows: rows("edc"), next: "n2" }, idOf).freshMore).toBe(false);
    const flooded = refreshed(list, undefined, { rows: rows("zyx"), next: "n2" }, idOf);
    expect(flooded.freshMore).toBe(true);
    expect(refreshed(flooded, undefined, { rows: rows("zyx") }, idOf).freshMore).toBe(false);
  });
  it("knows which pages an event concerns", () => {
    const list = extended(begun({ rows: rows("cb"), next: "n1" }, idOf), "n1", { rows: rows("a"), next: "n2" }, idOf);
    expect(concerned(list, new Set(["a"]), 3)).toEqual([undefined, "n1"]);
    expect(concerned(list, new Set(["x"]), 3)).toEqual([undefined]);
    expect(concerned(list, new Set(["a"]), 1)).toEqual([undefined]);
  });
});
