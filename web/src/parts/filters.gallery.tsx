// Filters of a list and its time range. They live in the address, so that what is set here is set
// in every picture of them.
import type { Gallery } from "@/gallery/gallery";
import { type Filter, FilterBar, Toggle } from "./filters";
import { TimeRange } from "./range";

const FILTERS: Filter[] = [
  { key: "made-up-q", name: "name or id", kind: "text", inline: true },
  { key: "made-up-state", name: "state", kind: "choice", many: true, options: [{ value: "queued", count: 29 }, { value: "running", count: 1204 }, { value: "failed", count: 0 }, { value: "waiting", count: null }] },
  { key: "made-up-agent", name: "agent", kind: "choice", options: [] },
  { key: "made-up-label", name: "label", kind: "text", hint: "team=a" },
];

const gallery: Gallery = {
  title: "FilterBar, TimeRange",
  states: [
    { name: "FilterBar: a field, choices with counts, none to choose from", show: () => <FilterBar filters={FILTERS} matching={{ shown: 0, of: 1204 }} /> },
    { name: "with a range and a toggle", show: () => <FilterBar filters={FILTERS.slice(0, 1)}><TimeRange /><Toggle on={false} set={() => {}} k="v">executions</Toggle></FilterBar> },
    { name: "TimeRange: its default, for all time", show: () => <span className="flex gap-2"><TimeRange /><TimeRange fallback="all" /></span> },
    { name: "TimeRange: fixed, the page stands still", show: () => <TimeRange fallback="2026-11-28T08:00:00.000Z..2026-11-28T09:30:00.000Z" /> },
  ],
};
export default gallery;
