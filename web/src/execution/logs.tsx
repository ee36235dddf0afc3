// The log lines of an execution: filtered by level on the plane and by text here, in a window.
// Follows new lines only while the reader is at the end; says what is missing.
import { useEffect, useMemo, useRef, useState } from "react";
import { addressOf } from "@/api/client";
import { useDisplay } from "@/look/display";
import { count, rfc3339 } from "@/look/format";
import { Plain } from "@/parts/plain";
import { ErrorPanel, Skeleton } from "@/parts/says";
import { useCopy } from "@/parts/values";
import { Window, type WindowHandle } from "@/parts/window";
import { JsonTree } from "./json-tree";
import { tokensOf } from "./json/tokens";
import { type LogLine, type LogRow, useLogs } from "./logs-data";

const LEVELS = [["debug", "all levels"], ["info", "info and up"], ["warn", "warnings and up"], ["error", "errors"]] as const;
const COLOURS: Record<string, string> = {
  error: "text-fail", critical: "text-fail", fatal: "text-fail", warn: "text-wait", warning: "text-wait", debug: "text-text-3", trace: "text-text-3",
};

export function LogsTab({ id, open }: { id: string; open: boolean }) {
  const [level, setLevel] = useState("debug");
  const [filter, setFilter] = useState("");
  const [follow, setFollow] = useState(open);
  const [chosen, setChosen] = useState<LogLine>();
  const logs = useLogs(id, level === "debug" ? "" : level, open);
  const box = useRef<WindowHandle>(null);
  const rows = useMemo(() => {
    const wanted = filter.trim().toLowerCase();
    if (wanted === "") return logs.rows;
    return logs.rows.filter((row) => row.is === "line" && `${row.line.message} ${row.line.source} ${row.line.event_type}`.toLowerCase().includes(wanted));
  }, [logs.rows, filter]);
  useEffect(() => {
    if (follow) box.current?.toEnd();
  }, [rows, follow]);

  /** The line after or before the chosen one; the first or last in sight of none. */
  const choose = (step: number) => {
    const lines = rows.flatMap((row, index) => (row.is === "line" ? [{ line: row.line, index }] : []));
    const now = lines.findIndex(({ line }) => line.seq === chosen?.seq);
    const next = lines[now < 0 ? (step > 0 ? 0 : lines.length - 1) : Math.max(0, Math.min(lines.length - 1, now + step))];
    if (!next) return;
    setChosen(next.line);
    box.current?.show(next.index);
  };

  if (logs.error && logs.rows.length === 0) return <ErrorPanel error={logs.error} what="logs" retry={logs.retry} />;
  if (logs.loading && logs.rows.length === 0) return <Skeleton rows={6} what="logs" />;
  return (
    <section aria-label="Logs" className="flex min-h-0 flex-1 flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b border-border px-3 py-1 text-xs">
        <select className="field" aria-label="Level" value={level} onChange={(event) => setLevel(event.target.value)}>
          {LEVELS.map(([word, text]) => <option key={word} value={word}>{text}</option>)}
        </select>
        <input className="field min-w-24 flex-1" type="search" placeholder="filter" aria-label="Filter lines by text" value={filter}
          onChange={(event) => setFilter(event.target.value)} />
        <span className="text-text-2">
          {filter ? `${count(rows.length)} of ${count(logs.rows.length)}` : `${count(logs.total)} ${logs.total === 1 ? "line" : "lines"}`}
          {logs.dropped > 0 && `, ${count(logs.dropped)} dropped (bound)`}
        </span>
        {open && !follow && (
          <button type="button" className="min-h-[24px] text-accent hover:underline" onClick={() => { setFollow(true); box.current?.toEnd(); }}>to the end</button>
        )}
        {open && follow && <span className="text-text-3">following</span>}
        <a className="text-accent" href={addressOf("/api/v1/executions/{id}/logs", { path: { id }, query: { limit: 5000 } })} download={`${id}-logs.json`}>download</a>
      </div>
      {logs.error && <ErrorPanel error={logs.error} what="newer lines" retry={logs.retry} />}
      {logs.earlier > 0 && <p className="px-3 py-1 text-xs text-text-2">{count(logs.earlier)} earlier lines are not shown</p>}
      {rows.length === 0 ? (
        <p className="p-3 text-text-2">
          {logs.rows.length > 0 ? "No line has this text." : level !== "debug" ? "No line of this level." : open ? "Nothing was logged yet." : "Nothing was logged."}
        </p>
      ) : (
        <Window label="Log lines" rows={rows.length} handle={box} height={20} className="min-h-40 flex-1 py-1 font-mono text-xs"
          onScroll={() => setFollow(open && (box.current?.atEnd() ?? false))}
          onKeyDown={(event) => {
            const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
            if (step === undefined) return;
            event.preventDefault();
            choose(step);
          }}
          row={(index) => <Line row={rows[index] as LogRow} chosen={chosen} choose={setChosen} />} />
      )}
      {chosen && <Detail line={chosen} close={() => setChosen(undefined)} />}
    </section>
  );
}

function Line({ row, chosen, choose }: { row: LogRow; chosen: LogLine | undefined; choose(line: LogLine): void }) {
  const { clock } = useDisplay();
  if (row.is === "gap") return <div className="hatched h-[20px] px-3 text-text-2"><span className="bg-surface px-1">{count(row.lines)} lines dropped (bound)</span></div>;
  const { line } = row;
  return (
    <button type="button" tabIndex={-1} onClick={() => choose(line)}
      className={`flex h-[20px] w-full items-center gap-2 px-3 text-left whitespace-pre ${chosen?.seq === line.seq ? "bg-selected" : "hover:bg-hover"}`}>
      <time className="text-text-3" dateTime={line.ts} title={line.ts}>{clockText(line.ts, clock === "utc")}</time>
      <span className={`w-14 shrink-0 truncate ${COLOURS[line.level?.toLowerCase()] ?? "text-text-2"}`}><Plain text={line.level} /></span>
      <span><Plain text={line.message} /></span>
    </button>
  );
}

/** Time of day with milliseconds. */
function clockText(at: string, utc: boolean): string {
  const ms = Date.parse(at);
  if (Number.isNaN(ms)) return at;
  const day = utc ? rfc3339(ms).slice(11, 19) : new Date(ms).toLocaleTimeString("sv-SE");
  return `${day}.${String(new Date(ms).getMilliseconds()).padStart(3, "0")}`;
}

function Detail({ line, close }: { line: LogLine; close(): void }) {
  const [copied, copy] = useCopy();
  const tokens = useMemo(() => tokensOf(line.attributes), [line.attributes]);
  return (
    <section aria-label={`Line ${line.seq}`} className="flex max-h-64 flex-col border-t border-border">
      <div className="flex flex-wrap items-center gap-3 px-3 py-1 text-xs text-text-2">
        <span>line {count(line.seq)}</span>
        <span><Plain text={line.event_type} /> from <Plain text={line.source} /></span>
        <span>{line.ts}</span>
        <span className="flex-1" />
        <button type="button" className="min-h-[24px] text-accent hover:underline" onClick={() => copy(line.message)}>{copied ? "copied" : "copy text"}</button>
        <button type="button" className="min-h-[24px] text-accent hover:underline" onClick={close}>close</button>
      </div>
      <pre className="max-h-24 overflow-auto px-3 break-words whitespace-pre-wrap"><Plain text={line.message} lines /></pre>
      {tokens.nodes.length > 1 && <JsonTree tokens={tokens} label="Attributes" fill />}
    </section>
  );
}
