// What is known of a node, from whom, how old; and what is not known, with the reason. Shows the
// plane's facts as they are; adds the ages alone.
import type { ReactNode } from "react";
import { span } from "@/look/format";
import { Age, Unknown } from "@/parts/values";
import type { NodeWhole } from "./shapes";

export type FactRow = {
  fact: string;
  at: string | null;
  /** Why there is none: shown where the age would be. */
  missing?: string;
  says: string | null;
  from: string;
};

const NOT_REPORTED = "not reported by node";

/** The words people read for the plane's. */
const NAMES: Record<string, string> = {
  frame: "last frame", acknowledged: "acknowledged", beat: "beat", inventory: "inventory",
  socket: "link", goodbye: "goodbye", wish: "wish", pin: "pin", probe: "probe", enrolled: "enrolled",
};

/** What every node is asked for; a fact that never came is a row with its reason, not a gap. */
const EXPECTED = ["frame", "acknowledged", "beat", "inventory", "goodbye"];

function missingOf(what: string, node: NodeWhole): string {
  if (what === "acknowledged" && node.kind === "relay") return NOT_REPORTED;
  if (what === "goodbye") return node.link === null ? "none was said" : "none since it connected";
  if (node.connected_at === null) return "never connected";
  if (what === "acknowledged") return "nothing was asked of it over this link";
  if (what === "inventory") return "connected, none came yet";
  return "none yet";
}

/** The rows of the table, in the plane's order; what is missing follows. */
export function factsOf(node: NodeWhole): FactRow[] {
  const rows: FactRow[] = node.facts.map((fact) => ({
    fact: NAMES[fact.what] ?? fact.what?.replaceAll("_", " ") ?? "—",
    at: fact.at,
    missing: fact.at === null ? missingOf(fact.what, node) : undefined,
    says: fact.text === "" ? null : fact.text,
    from: fact.by,
  }));
  const there = new Set(node.facts.map((fact) => fact.what));
  for (const what of EXPECTED) {
    if (!there.has(what)) rows.push({ fact: NAMES[what] ?? what, at: null, missing: missingOf(what, node), says: null, from: what === "goodbye" || what === "beat" || what === "inventory" || what === "acknowledged" ? "node" : "plane" });
  }
  const known = (fact: string, value: string | null, missing: string) =>
    rows.push({ fact, at: value === null ? null : (node.heard_at ?? null), missing: value === null ? missing : undefined, says: value, from: "node" });
  known("load", node.load === null ? null : node.load.toFixed(2), node.load_reason?.replaceAll("_", " ") ?? NOT_REPORTED);
  known("host", node.host, NOT_REPORTED);
  if (node.kind === "relay") {
    for (const fact of ["pids", "start times", "exit codes"]) rows.push({ fact, at: null, missing: NOT_REPORTED, says: null, from: "node" });
  }
  return rows;
}

export function Facts({ node }: { node: NodeWhole }) {
  return (
    <table className="w-full border-collapse">
      <caption className="visually-hidden">Facts about {node.name}: each with its age and who says it</caption>
      <thead className="hidden text-left text-xs text-text-3 sm:table-header-group">
        <tr><th className="w-36 py-1 pr-3">FACT</th><th className="w-28 pr-3">AGE</th><th className="pr-3">SAYS</th><th className="w-20">FROM</th></tr>
      </thead>
      <tbody>
        {factsOf(node).map((row, index) => (
          <tr key={`${index} ${row.fact}`} className="flex flex-wrap items-baseline gap-x-3 border-t border-border py-1 sm:table-row sm:py-0" style={{ minHeight: "var(--row)" }}>
            <th scope="row" className="font-semibold sm:h-[var(--row)] sm:pr-3">{row.fact}</th>
            <td className="whitespace-nowrap sm:pr-3"><FactAge row={row} /></td>
            <td className="order-last w-full text-text-2 sm:w-auto sm:pr-3">{row.says ?? <span className="text-text-3">— {row.missing}</span>}</td>
            <td className="text-text-3">{row.from}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function FactAge({ row }: { row: FactRow }): ReactNode {
  if (row.at !== null) return <Age at={row.at} plain />;
  return row.says === null ? <Unknown reason={row.missing} /> : <span title={row.missing} className="text-text-3">never</span>;
}

/** What a node is told to be, apart from what it is. */
export function Particulars({ node }: { node: NodeWhole }) {
  const rows: [string, ReactNode][] = [
    ["kind", node.kind === "relay" ? "Agent Relay broker" : "muster daemon"],
    ["version", node.version || <Unknown reason={NOT_REPORTED} />],
    ["labels", node.labels.join(" ") || "none"],
    ["room", node.max_workers === null ? "no bound" : `${node.max_workers} workers`],
    ["beats every", span(node.beat_interval_ms)],
    ["beats missed", String(node.beats_missed)],
    ["late frames", String(node.late_frames)],
    ["enrolled", <><Age key="at" at={node.enrolled_at} /> by {node.principal}</>],
    ["can", node.capabilities.join(", ") || <Unknown reason={NOT_REPORTED} />],
  ];
  return (
    <dl className="grid grid-cols-[max-content_1fr] gap-x-4 gap-y-1">
      {rows.map(([name, value]) => (
        <div key={name} className="contents"><dt className="text-text-3">{name}</dt><dd className="min-w-0 break-words">{value}</dd></div>
      ))}
    </dl>
  );
}
