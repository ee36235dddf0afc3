// A run with more steps than can be read one by one: its steps by caller and function, as the plane
// groups them. Each group leads to its first failure, and to its executions in the list.
import { useMemo, useRef } from "react";
import { useGet } from "@/api/queries";
import { count, duration } from "@/look/format";
import { CommandLine, ErrorPanel, Skeleton } from "@/parts/says";
import { Id, Unknown } from "@/parts/values";
import { Link, path } from "@/router";
import { FunctionName, Tally } from "./row-cell";
import { STEPS_MAX } from "./steps-store";
import { useWindow } from "./window";

const ROW = 28;

export function GroupsView({ run, total, phone }: { run: string; total: number; phone: boolean }) {
  const { data, error, refetch } = useGet("/api/v1/runs/{run}/groups", { path: { run } }, { refetchInterval: 10_000 });
  const rows = useMemo(() => (data?.groups ?? []).map((group) => ({ key: `${group.parent ?? ""} ${group.name}`, group })), [data]);
  const index = useMemo(() => new Map(rows.map((row, at) => [row.key, at])), [rows]);
  const box = useRef<HTMLDivElement>(null);
  const height = phone ? 56 : ROW;
  const view = useWindow(box, rows, height, phone ? 0 : ROW, (key) => index.get(key) ?? -1);
  if (error) return <ErrorPanel error={error} what="the groups" retry={() => void refetch()} />;
  if (!data) return <Skeleton what="the groups" />;
  const template = phone ? "minmax(0, 1fr)" : "minmax(180px, 2fr) minmax(0, 2fr) 130px 96px 96px 96px 130px";
  return (
    <>
      <p className="py-1.5 text-text-2">
        {count(total)} steps: more than {count(STEPS_MAX)} are shown as groups, {count(rows.length)} of them{data.more > 0 && `, ${count(data.more)} smaller ones are left out`}.{" "}
        <CommandLine command={`muster executions --run ${run}`} />
      </p>
      <div className="relative min-h-0 flex-1">
        <div ref={box} className="steps max-h-full overflow-y-scroll" role="table" aria-label="Groups of steps" aria-rowcount={rows.length} tabIndex={0} onScroll={view.onScroll}>
          {!phone && (
            <div className="steps-head" role="row" style={{ gridTemplateColumns: template, height: ROW }}>
              {["Function", "States", "Called by", "Shortest", "Middle", "Longest", "First failed"].map((head) => <div key={head} role="columnheader" className="pb-1 pl-2">{head}</div>)}
            </div>
          )}
          <div role="rowgroup" style={{ position: "relative", height: rows.length * height }}>
            {rows.slice(view.first, view.last).map(({ key, group }, offset) => (
              <div key={key} role="row" className="step-row" aria-rowindex={view.first + offset + 1} style={{ top: (view.first + offset) * height, height, gridTemplateColumns: template }}>
                <div role="cell" className="step-cell pl-2"><FunctionName name={group.name} /> <span className="text-text-2">×{count(group.total)}</span></div>
                <div role="cell" className="step-cell pl-2"><Tally counts={new Map(Object.entries(group.states))} /></div>
                {!phone && (
                  <>
                    <div role="cell" className="step-cell pl-2">{group.parent ? <Link to={path("executions", group.parent)} className="text-accent"><Id id={group.parent} plain /></Link> : <span className="text-text-3">the root</span>}</div>
                    {[group.min_ms, group.p50_ms, group.max_ms].map((ms, at) => <div key={at} role="cell" className="step-cell pl-2">{ms === undefined ? <Unknown reason="none has ended" /> : duration(ms)}</div>)}
                    <div role="cell" className="step-cell pl-2">{group.first_failed_id ? <Link to={path("executions", group.first_failed_id)} className="text-fail"><Id id={group.first_failed_id} plain /></Link> : <span className="text-text-3">none failed</span>}</div>
                  </>
                )}
              </div>
            ))}
          </div>
        </div>
      </div>
    </>
  );
}
