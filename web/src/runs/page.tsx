// The list of runs, or of executions (`v`): what is open and why, what failed last, the run that was
// just started. The plane filters, sorts and counts; rows stay where they are.
import { useCallback, useMemo, useRef, useState } from "react";
import { get } from "@/api/client";
import type { PlaneEvent } from "@/live/stream";
import { count } from "@/look/format";
import { plain } from "@/look/plain";
import { FilterBar, Toggle } from "@/parts/filters";
import { Misread } from "@/parts/misread";
import { TimeRange, useRange } from "@/parts/range";
import { EmptyState } from "@/parts/says";
import { VirtualTable } from "@/parts/table";
import { Room } from "@/parts/values";
import { Link, navigate, useQuery, useSearch } from "@/router";
import { PageHead, useTitle } from "@/shell/crumbs";
import { useKeys } from "@/shell/keys";
import { askOf } from "./list/address";
import { Bulk, CancelOne } from "./list/bulk";
import { columnsOf, secondLine } from "./list/columns";
import { filtersOf } from "./list/filters";
import { type Line, OPEN, isOpen, lineOfExecution, lineOfRun, sumOf } from "./list/line";
import { useLiveList } from "./list/use-live-list";

const LIMIT = 100;

export default function RunsPage() {
  const address = useSearch();
  const range = useRange();
  const [view, setView] = useQuery("v", "runs");
  const what = view === "executions" ? "executions" : "runs";
  const asked = askOf(address, range);
  // A relative range moves on: the list is the same one, and asks with the range of the moment.
  const key = JSON.stringify([what, { ...asked, since: undefined, until: undefined }, range.text]);
  const list = useLiveList<Line>({
    key,
    topic: "runs",
    idOf: (line) => line.id,
    about: (event: PlaneEvent) => (what === "runs" ? event.run_id : event.execution_id) ?? undefined,
    read: async (cursor, signal) => {
      const ask = { query: { ...asked, limit: LIMIT, cursor }, signal };
      const answer = what === "runs" ? await get("/api/v1/runs", ask) : await get("/api/v1/executions", ask);
      const rows = "runs" in answer ? answer.runs.map((run) => lineOfRun(run, answer.as_of)) : answer.executions.map((execution) => lineOfExecution(execution, answer.as_of));
      return { rows, next: answer.next_cursor ?? undefined, total: answer.total, counts: answer.counts as Record<string, number> | undefined };
    },
  });
  // With the line as it was then: what was selected stays so when `n` begins the list without it.
  const [picked, setPicked] = useState<ReadonlyMap<string, Line>>(new Map());
  const { rows } = list;
  const lines = useMemo(() => new Map(rows.map((line) => [line.id, line])), [rows]);
  const known = useRef(lines);
  known.current = lines;
  const select = useCallback((id: string) => setPicked((now) => {
    const next = new Map(now);
    const line = known.current.get(id);
    if (!next.delete(id) && line) next.set(id, line);
    return next;
  }), []);
  const selected = useMemo(() => new Set(picked.keys()), [picked]);
  const columns = useMemo(() => columnsOf(what), [what]);
  const [cancelling, setCancelling] = useState<Line>();
  const { counts, total } = list.list;
  const filters = filtersOf(what, counts, address);
  const filtered = filters.some((filter) => address.get(filter.key));
  useTitle(what === "runs" ? "Runs" : "Executions");
  useKeys([{ key: "Escape", does: "select nothing", run: () => setPicked(new Map()) }]);
  const chosen = [...picked].map(([id, line]) => lines.get(id) ?? line);

  return (
    <>
      <PageHead crumbs={<><h1 className="font-semibold">{what === "runs" ? "Runs" : "Executions"}</h1><Counts counts={counts} total={total} address={address} /></>} />
      <FilterBar filters={filters} focusKey="f" matching={{ shown: total, of: undefined }}>
        <TimeRange />
        <Toggle on={what === "executions"} set={(on) => setView(on ? "executions" : "runs")} k="v">executions</Toggle>
        {view !== what && <Misread of="v" value={view} shown={`the list of ${what}`} />}
      </FilterBar>
      <VirtualTable
        label={what} fill rows={list.rows} columns={columns} idOf={(line) => line.id} to={(line) => line.to} second={secondLine}
        dimmed={(line) => list.list.dimmed.has(line.id)} selected={selected} select={select} more={list.more} total={total} query={list.query} place={key}
        fresh={{ count: list.list.fresh.size + list.list.dimmed.size, show: () => list.begin(), text: freshText(list.list.fresh.size, list.list.dimmed.size, list.list.freshMore) }}
        nameOf={(line) => plain(line.name)}
        acts={(line) => [
          { verb: "Why", hint: "w", command: `muster why ${line.id}`, run: () => why(line) },
          { verb: "Copy the id of", hint: "c", run: () => void navigator.clipboard?.writeText(line.id) },
          { verb: "Cancel", command: `muster cancel ${line.id}${what === "runs" ? " --tree" : ""}`, barred: isOpen(line.state) ? undefined : `it is ${line.state}`, run: () => setCancelling(line) },
        ]}
        onKey={(pressed, line) => {
          if (pressed === "w") why(line);
          else if (pressed === "c") void navigator.clipboard?.writeText(line.id);
          else return false;
          return true;
        }}
        empty={<Nothing what={what} filtered={filtered} range={range.text} />}
      />
      {cancelling && <CancelOne key={cancelling.id} what={what} line={lines.get(cancelling.id) ?? cancelling} done={() => setCancelling(undefined)} />}
      {chosen.length > 0 && <Bulk what={what} lines={chosen} unseen={chosen.filter((line) => !lines.has(line.id)).length} clear={() => setPicked(new Map())} />}
    </>
  );
}

const why = (line: Line) => navigate(`${line.to}${line.to.includes("?") ? "&" : "?"}tab=why`);

function freshText(fresh: number, gone: number, more: boolean): string {
  const arrived = `${more ? "≥ " : ""}${count(fresh)} new`;
  if (fresh > 0 && gone > 0) return `${arrived}, ${count(gone)} gone`;
  return fresh > 0 ? arrived : `${count(gone)} no longer match`;
}

/** `open 7 · failed 2 · all 1,204`: each is the list that it counts. */
function Counts({ counts, total, address }: { counts: Record<string, number> | null; total: number | null; address: URLSearchParams }) {
  if (!counts) return total === null ? null : <span className="text-text-2">{count(total)}</span>;
  const link = (state: string | null) => {
    const query = new URLSearchParams(address);
    if (state === null) query.delete("state");
    else query.set("state", state);
    return `/runs${query.size > 0 ? `?${query}` : ""}`;
  };
  const each: [string, string | null, number][] = [
    ["open", [...OPEN].join(","), sumOf(counts, OPEN)], ["failed", "failed,timeout", (counts.failed ?? 0) + (counts.timeout ?? 0)], ["all", null, sumOf(counts)],
  ];
  return (
    <span className="flex flex-wrap gap-x-3 text-text-2">
      {each.map(([name, state, many]) => <Link key={name} to={link(state)} aria-current={(address.get("state") ?? null) === state ? "true" : undefined} className="aria-[current]:font-semibold aria-[current]:text-text">{name} <Room ch={Math.max(3, count(many).length)} start>{count(many)}</Room></Link>)}
    </span>
  );
}

function Nothing({ what, filtered, range }: { what: string; filtered: boolean; range: string }) {
  const [, setRange] = useQuery("t", "24h");
  if (filtered) return <EmptyState>No {what} match. Clear a filter{range !== "all" && <>, or <button type="button" className="text-accent underline" onClick={() => setRange("all")}>look at all time</button></>}.</EmptyState>;
  if (range !== "all") {
    return (
      <EmptyState command={`muster call hello.greet --input '{"name":"world"}'`}>
        No {what} are open, and none ended in this time. <button type="button" className="text-accent underline" onClick={() => setRange("all")}>Look at all time</button>, or make one:
      </EmptyState>
    );
  }
  return <EmptyState command={`muster call hello.greet --input '{"name":"world"}'`}>Nothing has been called yet. Call a function, and its run is here:</EmptyState>;
}
