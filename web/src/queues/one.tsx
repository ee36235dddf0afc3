// One queue: what holds it, and its entries in the order in which they start.
import type { components } from "muster-openapi";
import { useState } from "react";
import { agentActs } from "@/agents/acts";
import { useGet } from "@/api/queries";
import { useLive } from "@/live/stream";
import { count } from "@/look/format";
import { ActButton } from "@/parts/act";
import { Toggle } from "@/parts/filters";
import { Plain } from "@/parts/plain";
import { EmptyState, ErrorPanel, Skeleton } from "@/parts/says";
import { VirtualTable } from "@/parts/table";
import { Age, Id } from "@/parts/values";
import { WhyPanel } from "@/parts/why";
import { Link, path, useQuery } from "@/router";
import { Bulk } from "@/runs/list/bulk";
import type { Line } from "@/runs/list/line";
import { PageHead, useTitle } from "@/shell/crumbs";
import { Estimate, HeldBy, LastStarts, Oldest, Rate, RunCap, Waiting } from "./cells";

type Entry = components["schemas"]["QueueEntry"];

const lineOf = (agent: string, entry: Entry): Line => ({
  id: entry.execution_id, run: entry.run_id, to: `/runs/${encodeURIComponent(entry.run_id)}?step=${encodeURIComponent(entry.execution_id)}`, name: `${agent}.${entry.function}`,
  state: "queued", why: undefined, counts: undefined, steps: undefined, at: entry.created_at, ended: undefined, took: undefined, restartOf: undefined, saidAt: undefined,
});

export function OneQueue({ agent }: { agent: string }) {
  useLive(["queues"]);
  const query = useGet("/api/v1/queues/{agent}", { path: { agent } }, { staleTime: 30_000 });
  const [why, setWhy] = useQuery("why");
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  useTitle(`queue of ${agent}`);
  // The acts are the agent's own: hold, lift the hold, change the cap.
  const owner = useGet("/api/v1/nodes/{agent}", { path: { agent } }, { staleTime: 30_000 });
  const acts = owner.data ? agentActs(owner.data).filter((act) => ["hold", "unhold", "say_why", "cap"].includes(act.name)) : [];
  const { data } = query;
  const crumbs = (
    <>
      <Link to="/queues" className="text-text-2">Queues</Link><span className="text-text-3">/</span><h1><Plain text={agent} /></h1>
      <Link to={path("agents", agent)} className="text-accent hover:underline">agent</Link>
    </>
  );
  if (!data) {
    return (
      <>
        <PageHead crumbs={crumbs} />
        {query.isPending ? <Skeleton what="the queue" />
          : query.error?.notFound ? <EmptyState command="muster agents">No agent <Plain text={agent} /> ever registered here, so it has no queue.</EmptyState>
            : <ErrorPanel error={query.error} what="the queue" retry={() => void query.refetch()} />}
      </>
    );
  }
  const facts = [["running/cap", RunCap], ["wait", Waiting], ["oldest", Oldest], ["starts", Rate], ["the last starts", LastStarts], ["held up by", HeldBy]] as const;
  const chosen = data.entries.filter((entry) => selected.has(entry.execution_id)).map((entry) => lineOf(agent, entry));
  const toWhy = (entry: Entry) => `${path("executions", entry.execution_id)}?tab=why`;
  return (
    <>
      <PageHead crumbs={crumbs} acts={acts.map((act) => <ActButton key={act.name} act={act} />)} />
      <dl className="facts">
        {facts.map(([name, Cell]) => <div key={name} className="max-w-full min-w-0"><dt>{name}</dt><dd className="min-w-0"><Cell line={data} /></dd></div>)}
      </dl>
      <div className="flex items-center gap-2 pb-2"><Toggle on={why === "1"} set={(on) => setWhy(on ? "1" : null)} k="w">why</Toggle></div>
      {why === "1" && <div className="mb-3 max-h-[40vh] overflow-auto border-y border-border"><WhyPanel id={agent} kind="queue" /></div>}
      <VirtualTable
        label={`queue of ${agent}`} fill rows={data.entries} idOf={(entry) => entry.execution_id} to={(entry) => lineOf(agent, entry).to} query={query} total={data.entries.length + data.more} place={`queue ${agent}`}
        selected={selected} select={(id) => setSelected((now) => {
          const next = new Set(now);
          if (!next.delete(id)) next.add(id);
          return next;
        })}
        columns={[
          { id: "position", head: "#", width: "56px", align: "end", card: "head", cell: (entry) => `#${count(entry.position)}` },
          { id: "run", head: "Run", width: "128px", card: "line", cell: (entry) => <Id id={entry.run_id} tabIndex={-1} /> },
          { id: "target", head: "Call", width: "minmax(160px, 1fr)", link: true, card: "head", cell: (entry) => <Plain text={`${agent}.${entry.function}`} /> },
          { id: "class", head: "Class", width: "56px", align: "end", from: "sm", cell: (entry) => entry.class },
          { id: "turn", head: "Turn", width: "56px", align: "end", from: "sm", cell: (entry) => count(entry.turn) },
          { id: "age", head: "Waits", width: "88px", align: "end", card: "line", cell: (entry) => <Age at={entry.created_at} plain /> },
          { id: "starts", head: "Starts", width: "96px", align: "end", card: "side", cell: (entry) => <Estimate ms={entry.starts_in_ms} /> },
          { id: "why", head: <span className="visually-hidden">Why</span>, width: "48px", align: "end", from: "sm", cell: (entry) => <Link to={toWhy(entry)} tabIndex={-1} className="text-accent hover:underline">why</Link> },
        ]}
        empty={<EmptyState>Nothing waits. A call of <code><Plain text={agent} /></code> {data.held ? "would be queued behind the hold" : "starts at once"}.</EmptyState>}
      />
      {data.more > 0 && <p className="pt-2 text-text-2">and {count(data.more)} more behind these; the first {count(data.entries.length)} are exact.</p>}
      {chosen.length > 0 && <Bulk what="executions" lines={chosen} clear={() => setSelected(new Set())} />}
    </>
  );
}
