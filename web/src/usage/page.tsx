// What agents say that their work used: tokens and cost, by day, agent, function or run. Only sums
// of reports: there are no prices here, and what was not reported is said, not taken for nothing.
import { useMemo, useState } from "react";
import { get } from "@/api/client";
import { count, short } from "@/look/format";
import { Misread } from "@/parts/misread";
import { Plain } from "@/parts/plain";
import { TimeRange, useRange } from "@/parts/range";
import { EmptyState } from "@/parts/says";
import { type Column, VirtualTable } from "@/parts/table";
import { Id, Num, Unknown } from "@/parts/values";
import { path, useQuery } from "@/router";
import { useLiveList } from "@/runs/list/use-live-list";
import { PageHead, useTitle } from "@/shell/crumbs";
import { type Sums, type UsageRow, missing, money, reasonOf } from "./sums";

const BY = ["day", "agent", "function", "run"] as const;
type By = (typeof BY)[number];
const DAY_MS = 86_400_000;

export default function UsagePage() {
  const range = useRange("7d");
  const [text, setBy] = useQuery("by", "day");
  const by = BY.find((each) => each === text) ?? "day";
  const [total, setTotal] = useState<Sums>();
  const list = useLiveList<UsageRow>({
    key: JSON.stringify(["usage", by, range.text]), topic: "runs", everyMs: 10_000,
    idOf: (row) => row.key,
    about: (event) => (/^execution\.(succeeded|failed|cancelled|timed_out)$/.test(event.kind) ? "" : undefined),
    read: async (cursor, signal) => {
      const answer = await get("/api/v1/usage", { query: { by, since: range.since, until: range.until, limit: 100, cursor }, signal });
      setTotal(answer.total);
      return { rows: answer.rows, next: answer.next_cursor ?? undefined, total: answer.rows_total };
    },
  });
  const top = useMemo(() => Math.max(1, ...list.rows.map((row) => row.usage?.total_tokens ?? 0)), [list.rows]);
  const columns = useMemo(() => columnsOf(by, top), [by, top]);
  useTitle("Usage");
  const gaps = total && missing(total);
  return (
    <>
      <PageHead crumbs={<h1>Usage</h1>} />
      <div className="flex flex-wrap items-center gap-2 pb-2" role="group" aria-label="Grouped by">
        {BY.map((each) => <button key={each} type="button" className="button" aria-pressed={by === each} onClick={() => setBy(each)}>by {each}</button>)}
        <TimeRange fallback="7d" />
        {by !== text && <Misread of="by" value={text} shown={`by ${by}`} />}
      </div>
      {total && total.executions > 0 && (
        <>
          <dl className="facts">
            <div><dt>ended</dt><dd>{count(total.executions)}</dd></div>
            <div><dt>tokens in</dt><dd><Num value={total.input_tokens} reason={reasonOf(total)} /></dd></div>
            <div><dt>tokens out</dt><dd><Num value={total.output_tokens} reason={reasonOf(total)} /></dd></div>
            <div><dt>tokens</dt><dd><Num value={total.total_tokens} reason={reasonOf(total)} /></dd></div>
            <div><dt>model calls</dt><dd><Num value={total.model_calls} reason={reasonOf(total)} /></dd></div>
            <div><dt>cost as reported</dt><dd><Costs sums={total} /></dd></div>
          </dl>
          {gaps && <p className="pb-2 text-wait">{gaps}. More may have been used than these sums say.</p>}
        </>
      )}
      <VirtualTable
        label={`usage by ${by}`} fill rows={list.rows} columns={columns} idOf={(row) => row.key} to={(row) => linkOf(by, row)} query={list.query} more={list.more} total={list.list.total} place={`usage ${by} ${range.text}`}
        fresh={{ count: list.list.fresh.size, show: list.begin }}
        second={(row) => missing(row.usage)}
        empty={<EmptyState command={`muster call hello.greet --input '{"name":"world"}'`}>Nothing ended in this time. What agents report as usage with their results is summed up here.</EmptyState>}
      />
    </>
  );
}

/** What the sums are made of: the executions that ended then, of it. */
function linkOf(by: By, row: UsageRow): string {
  if (by === "run") return path("runs", row.run_id ?? row.key);
  const query = new URLSearchParams({ v: "executions" });
  const day = Date.parse(`${row.key}T00:00:00Z`);
  if (by === "day" && Number.isNaN(day)) return "/usage";
  if (by === "day") query.set("t", `${row.key}T00:00:00.000Z..${new Date(day + DAY_MS).toISOString()}`);
  else {
    query.set("agent", row.agent ?? row.key);
    if (row.function) query.set("fn", row.function);
    query.set("state", "succeeded,failed,cancelled,timeout");
  }
  return `/runs?${query}`;
}

function Costs({ sums }: { sums: Sums }) {
  if (!sums?.cost?.length) return <Unknown reason={sums?.usage_unknown ?? "no report names a cost"} />;
  return (
    <span className="inline-flex flex-wrap gap-x-3">
      {sums.cost.map((cost) => <span key={cost.currency} title={`${cost.amount} ${cost.currency}, named by ${count(cost.executions)} of ${count(sums.executions)} executions`}>{money(cost.amount)} <span className="text-text-2"><Plain text={cost.currency} /></span></span>)}
    </span>
  );
}

function Tokens({ value, sums }: { value: number | null | undefined; sums: Sums }) {
  if (value === null || value === undefined) return <Unknown reason={reasonOf(sums)} />;
  return <span title={count(value)}>{short(value)}</span>;
}

function columnsOf(by: By, top: number): Column<UsageRow>[] {
  return [
    { id: "key", head: by === "day" ? "Day (UTC)" : by[0]?.toUpperCase() + by.slice(1), width: "minmax(160px, 2fr)", link: true, card: "head", cell: (row) => (by === "run" ? <Id id={row.key} plain /> : <Plain text={row.key} />) },
    { id: "ended", head: "Ended", width: "72px", align: "end", from: "sm", cell: (row) => count(row.usage?.executions) },
    { id: "in", head: "In", width: "72px", align: "end", card: "line", cell: (row) => <><span className="card-only">in </span><Tokens value={row.usage?.input_tokens} sums={row.usage} /></> },
    { id: "out", head: "Out", width: "72px", align: "end", card: "line", cell: (row) => <><span className="card-only">out </span><Tokens value={row.usage?.output_tokens} sums={row.usage} /></> },
    { id: "total", head: "Tokens", width: "80px", align: "end", card: "none", cell: (row) => <Tokens value={row.usage?.total_tokens} sums={row.usage} /> },
    { id: "share", head: <span className="visually-hidden">share of the largest</span>, width: "minmax(60px, 1fr)", from: "lg", cell: (row) => row.usage?.total_tokens == null ? <Unknown reason={reasonOf(row.usage)} /> : (
      <span aria-hidden className="bar-track block"><span className="painted" style={{ width: `${Math.max(1, (row.usage.total_tokens / top) * 100)}%`, background: "var(--neutral)" }} /></span>
    ) },
    { id: "calls", head: "Model calls", width: "88px", align: "end", from: "lg", cell: (row) => <Num value={row.usage?.model_calls} reason={reasonOf(row.usage)} /> },
    { id: "cost", head: "Cost as reported", width: "160px", align: "end", card: "side", cell: (row) => <Costs sums={row.usage} /> },
  ];
}
