// The list in its states, one of them with 100,000 rows.
import { useState } from "react";
import { Problem } from "@/api/problem";
import type { Gallery } from "@/gallery/gallery";
import { EmptyState } from "./says";
import { StateMark } from "./state-mark";
import { type Column, GroupRow, VirtualTable } from "./table";

type Row = { id: string; state: string; name: string; n: number };
const STATES = ["succeeded", "running", "failed", "waiting", "queued", "cancelled"];
const rows = (count: number): Row[] => Array.from({ length: count }, (_, n) => ({ id: `row-${n}`, n, state: STATES[n % 6] ?? "queued", name: `made-up.row_${n}` }));
const columns: Column<Row>[] = [
  { id: "state", head: "State", width: "112px", cell: (row) => <StateMark state={row.state} /> },
  { id: "name", head: "Name", width: "minmax(0, 1fr)", cell: (row) => row.name },
  { id: "n", head: "n", width: "80px", align: "end", cell: (row) => row.n.toLocaleString("en-US") },
];
const common = { label: "made-up rows", columns, idOf: (row: Row) => row.id, keys: false, empty: <EmptyState command="muster call hello.greet">Nothing is here.</EmptyState> };
const many = rows(100_000);
const idle = { isPending: false, error: null, dataUpdatedAt: 0, refetch: () => {} };
const second = (row: Row) => (row.state === "failed" || row.state === "waiting" ? "why it waits or failed" : null);

function Selectable() {
  const [selected, select] = useState<ReadonlySet<string>>(new Set(["row-1"]));
  return <VirtualTable {...common} rows={rows(6)} second={second} selected={selected} dimmed={(row) => row.n === 3} select={(id) => select((now) => {
    const next = new Set(now);
    if (!next.delete(id)) next.add(id);
    return next;
  })} />;
}

function Group() {
  const [open, setOpen] = useState(false);
  return <GroupRow open={open} toggle={() => setOpen(!open)} title="weather.lookup" count={24}>19 ✓ 1 ✕ 4 ▶</GroupRow>;
}

const gallery: Gallery = {
  title: "VirtualTable",
  states: [
    { name: "100,000 rows", show: () => <div style={{ height: 260 }} className="flex flex-col"><VirtualTable {...common} fill rows={many} total={100_000} open={() => {}} /></div> },
    { name: "selected, dimmed, second lines", show: () => <Selectable /> },
    { name: "new rows wait", show: () => <VirtualTable {...common} rows={rows(3)} fresh={{ count: 12, show: () => {} }} /> },
    { name: "out of date", show: () => <VirtualTable {...common} rows={rows(3)} query={{ ...idle, dataUpdatedAt: Date.UTC(2026, 10, 29, 14, 2, 11), error: new Problem("offline", "the plane did not answer", 0) }} /> },
    { name: "loading", show: () => <VirtualTable {...common} rows={[]} query={{ ...idle, isPending: true }} /> },
    { name: "failed", show: () => <VirtualTable {...common} rows={[]} query={{ ...idle, error: new Problem("overloaded", "too many requests wait", 503, { retryAfterMs: 8_000 }) }} /> },
    { name: "empty", show: () => <VirtualTable {...common} rows={[]} query={idle} /> },
    { name: "GroupRow", show: () => <Group /> },
  ],
};
export default gallery;
