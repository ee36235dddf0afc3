// Who can be called: every agent, who needs somebody first, then fixed until the reader asks for
// the order anew.
import { useState } from "react";
import { count, percent } from "@/look/format";
import { ActButton } from "@/parts/act";
import { FilterBar, type Filter } from "@/parts/filters";
import { KeyHint } from "@/parts/key-hint";
import { HeldWords } from "@/parts/held";
import { Plain } from "@/parts/plain";
import { CommandLine, EmptyState } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";
import { type Column, VirtualTable } from "@/parts/table";
import { Age, Unknown } from "@/parts/values";
import { Link, navigate, path, useSearch } from "@/router";
import { PageHead, useTitle } from "@/shell/crumbs";
import { useKeys } from "@/shell/keys";
import { listLink } from "@/runs/list/address";
import { agentActs } from "./acts";
import { useAgents } from "./list";
import type { AgentLine } from "./shapes";
import { SlotBar } from "./slots";

const STATES = ["active", "degraded", "restarting", "unreachable_callback", "unknown", "down"];

export default function Page() {
  useTitle("Agents");
  const search = useSearch();
  const filter = { q: search.get("q") ?? undefined, state: search.get("state") ?? undefined };
  const list = useAgents(filter);
  const [active, setActive] = useState<AgentLine>();
  const states = list.first?.states;
  const filters: Filter[] = [
    { key: "q", name: "agent or function", kind: "text", inline: true },
    { key: "state", kind: "choice", many: true, options: STATES.map((value) => ({ value, count: states ? (states[value] ?? 0) : undefined })) },
  ];
  useKeys([
    { key: "Shift+C", does: "call a function of the agent", run: () => active && navigate(callPath(active)) },
    { key: "w", does: "why the agent is so", run: () => active && navigate(`${path("agents", active.id)}?why=1`) },
    ...(list.fresh === 0 && list.moved ? [{ key: "n", does: "order anew", run: list.reorder }] : []),
  ]);
  const filtered = filter.q !== undefined || filter.state !== undefined;
  return (
    <>
      <PageHead crumbs={<h1>Agents</h1>} acts={active && agentActs(active).filter((act) => act.name === "hold" || act.name === "unhold").map((act) => <ActButton key={`${act.name} ${active.id}`} act={{ ...act, object: active.id }} />)} />
      <FilterBar filters={filters} focusKey="f" matching={{ shown: list.first?.total, of: states && Object.values(states).reduce((sum, many) => sum + many, 0) }}>
        {list.fresh === 0 && list.moved && <button type="button" className="button" onClick={list.reorder}>Order anew<KeyHint k="n" /></button>}
      </FilterBar>
      <VirtualTable
        label="Agents" rows={list.shown} columns={COLUMNS} idOf={(agent) => agent.id} to={(agent) => path("agents", agent.id)} fill
        second={(agent) => (agent.why && agent.state !== "active" ? <Plain text={agent.why} /> : second(agent))}
        total={list.first?.total} more={list.more} query={list.query} moved={(agent) => setActive(agent)}
        fresh={list.fresh > 0 ? { count: list.fresh, show: list.reorder } : undefined}
        empty={filtered
          ? <EmptyState>No agent matches. <Link to="/agents" className="text-accent">Clear</Link></EmptyState>
          : <EmptyState command="muster dev -- python main.py">No agent has registered. Start one, or give an agent that runs elsewhere this address: <CommandLine command={`AGENTFIELD_SERVER=${window.location.origin}`} /></EmptyState>}
      />
    </>
  );
}

const callPath = (agent: AgentLine): string => {
  const first = agent.functions[0];
  return first ? path("agents", agent.id, "call", first.id) : path("agents", agent.id);
};

/** Why an agent that is well still needs somebody. */
function second(agent: AgentLine) {
  if (agent.pending_tags && agent.pending_tags.length > 0) return <>tags wait for approval: <Plain text={agent.pending_tags.join(", ")} /></>;
  if (agent.hold) return <>on hold{agent.hold.everything ? ", as everything is," : ""} <HeldWords hold={agent.hold} /></>;
  return agent.why ? <Plain text={agent.why} /> : null;
}

const active = (agent: AgentLine): number => agent.instances.filter((instance) => instance.state === "active").length;

const COLUMNS: Column<AgentLine>[] = [
  { id: "state", head: "State", width: "176px", card: "head", cell: (agent) => <StateMark state={agent.state} evidence={agent.evidence ?? undefined} /> },
  { id: "agent", head: "Agent", width: "minmax(140px, 1fr)", card: "head", link: true, cell: (agent) => <Plain text={agent.id} /> },
  { id: "instances", head: "Instances", width: "88px", from: "sm", cell: (agent) => (agent.instance_count === active(agent) ? count(agent.instance_count) : `${count(active(agent))} of ${count(agent.instance_count)}`) },
  { id: "slots", head: "Slots", width: "136px", from: "sm", card: "line", cell: (agent) => (agent.slots ? <><span className="card-only">{agent.slots.cap === null ? "runs " : "slots "}</span><SlotBar used={agent.slots.used} cap={agent.slots.cap} /></> : <Unknown reason="the plane does not say" />) },
  {
    id: "queue", head: "Queue", width: "112px", card: "side",
    cell: (agent) => (!agent.queue ? <Unknown reason="the plane does not say" /> : agent.queue.depth === 0 ? <>0<span className="card-only"> wait</span></> : <Link to={path("queues", agent.id)} tabIndex={-1}>{count(agent.queue.depth)}{agent.queue.oldest_at && <>, <Age at={agent.queue.oldest_at} plain /></>}<span className="card-only"> wait</span></Link>),
  },
  { id: "window", head: "Last hour", width: "176px", from: "lg", cell: (agent) => <LastHour agent={agent} /> },
  {
    id: "sign", head: "Last sign", width: "144px", from: "sm", align: "end",
    cell: (agent) => {
      const last = agent.instances.map((instance) => instance.last_sign).filter(Boolean).sort((a, b) => (a.at < b.at ? 1 : -1))[0];
      return last ? <>{last.what} <Age at={last.at} plain /></> : <Unknown reason="never heard" />;
    },
  },
];

/** What ended lately, and what of it failed: each number is the list of exactly these. */
export function LastHour({ agent, words }: { agent: AgentLine; words?: boolean }) {
  if (!agent.window) return <Unknown reason="the plane does not say" />;
  const { calls, failed, refused, from } = agent.window;
  if (calls === 0 && refused === 0) return <span className="text-text-3">nothing ended</span>;
  const to = (state: string) => listLink(`agent=${encodeURIComponent(agent.id)}&state=${state}&since=${from}`);
  return (
    <span>
      <Link to={to("succeeded,failed,cancelled,timeout")} tabIndex={words ? 0 : -1} className={words ? "target underline" : ""}>{count(calls)}{words && " ended"}</Link>
      {failed > 0 && <>, <Link to={to("failed,timeout")} tabIndex={words ? 0 : -1} className={words ? "target text-fail underline" : "text-fail"} title={percent(failed, calls)}>{words ? `${percent(failed, calls)} failed` : `${count(failed)}✕`}</Link></>}
      {refused > 0 && <span title="refused before anything was stored">, {count(refused)} refused</span>}
    </span>
  );
}
