// One node: what do we know, from whom, how old. The verdict, the facts under it, what happened.
import { useState } from "react";
import { useGet } from "@/api/queries";
import { Link, useQuery } from "@/router";
import { Plain } from "@/parts/plain";
import { AsOf, EmptyState, ErrorPanel, Panel, Skeleton } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";
import { Age, Id, Lasting } from "@/parts/values";
import { WhyPanel } from "@/parts/why";
import { PageHead, useTitle } from "@/shell/crumbs";
import { useKeys } from "@/shell/keys";
import { EVIDENCE_MS, aboutFleet, useStale } from "./data";
import { Facts, Particulars } from "./facts";
import { History } from "./history";
import { drawnAs, partsOf, roomOf } from "./map";
import { MoreNodeActs, NodeActs } from "./node-acts";
import type { NodeWhole } from "./shapes";
import { Squares } from "./squares";
import { WorkerTable } from "./worker-table";

const ROUTES = ["/api/v1/fleet/nodes/", "/api/v1/fleet/workers"];

export default function NodePage({ node }: { node: string }) {
  const asked = useGet("/api/v1/fleet/nodes/{node}", { path: { node } }, { refetchInterval: EVIDENCE_MS, keep: true });
  const known = asked.data as NodeWhole | undefined;
  const [why, setWhy] = useQuery("why");
  const [more, setMore] = useState(false);
  const [past, setPast] = useQuery("workers");
  useStale(known ? [`node:${known.id}`, "fleet"] : ["fleet"], ROUTES, aboutFleet);
  useTitle(known?.name ?? node, known ? drawnAs(known) : undefined);
  useKeys([{ key: "w", does: "why", run: () => setWhy(why ? null : "1") }]);
  return (
    <>
      <PageHead
        crumbs={
          <>
            <Link to="/fleet" className="text-text-2">Fleet</Link><span className="text-text-3">/</span>
            <h1>{known?.name ?? node}</h1>
            {known && <Id id={known.id} />}
          </>
        }
        acts={known && <Panel what="the acts"><NodeActs key={known.id} node={known} more={{ open: more, toggle: () => setMore(!more) }} /></Panel>}
      />
      {asked.isPending && <Skeleton what={`node ${node}`} />}
      {asked.error && !known && (asked.error.notFound
        ? <EmptyState command={`muster nodes enroll ${node}`}>There is no node {node}.</EmptyState>
        : <ErrorPanel error={asked.error} what={`node ${node}`} retry={() => void asked.refetch()} />)}
      {known && (
        <div className="flex flex-col gap-6">
          {more && <Panel what="the acts"><MoreNodeActs key={known.id} node={known} /></Panel>}
          <Panel what="the verdict"><Verdict node={known} why={() => setWhy(why ? null : "1")} open={why !== ""} /></Panel>
          {asked.error && <AsOf at={asked.dataUpdatedAt} />}
          {why && <Panel what="why"><WhyPanel id={known.id} /></Panel>}
          <div className="grid gap-6 lg:grid-cols-[minmax(0,2fr)_minmax(260px,1fr)]">
            <section aria-labelledby="facts"><h2 id="facts" className="mb-1">Facts</h2><Panel what="facts"><Facts node={known} /></Panel></section>
            <section aria-labelledby="particulars"><h2 id="particulars" className="mb-1">What it is</h2><Panel what="what it is"><Particulars node={known} /></Panel></section>
          </div>
          <section aria-labelledby="workers" className="flex flex-col gap-2">
            <div className="flex items-center gap-3">
              <h2 id="workers">Workers</h2>
              <label className="flex min-h-6 items-center gap-1 text-text-2">
                <input type="checkbox" checked={past === "all"} onChange={(event) => setPast(event.target.checked ? "all" : null)} /> those of the past too
              </label>
            </div>
            <Panel what="workers"><WorkerTable node={known.name} ended={past === "all"} /></Panel>
          </section>
          <Panel what="the history"><History of="nodes" id={known.id} /></Panel>
        </div>
      )}
    </>
  );
}

function Verdict({ node, why, open }: { node: NodeWhole; why(): void; open: boolean }) {
  return (
    <div className="flex flex-col gap-2">
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-base">
        <StateMark state={drawnAs(node)} evidence={node.evidence} />
        <span className="text-text-2"><Lasting at={node.state_at} /></span>
        <span><Plain text={node.evidence} /></span>
        <button type="button" className="text-accent underline underline-offset-2" aria-expanded={open} onClick={why}>why</button>
      </p>
      <p className="flex flex-wrap items-center gap-x-4 gap-y-1 text-text-2">
        {node.pin && <span className="text-wait">pinned {node.pin.state} by {node.pin.by} <Age at={node.pin.at} />{node.pin.reason && `: ${node.pin.reason}`}</span>}
        {node.wish !== "active" && <span><StateMark state={node.wish} />{node.wished && <> by {node.wished.by} <Age at={node.wished.at} />{node.wished.reason && `: ${node.wished.reason}`}</>}</span>}
        {node.next && <span>next <Age at={node.next.at} due />: {node.next.what}</span>}
        {node.drift && <Link to="/fleet#drift" className="text-wait underline underline-offset-2">drift: it says other than is believed</Link>}
      </p>
      <div className="flex flex-wrap items-center gap-3">
        <Squares parts={partsOf(node)} size={14} />
        <span>{roomOf(node)}{node.workers_last && <> as of <Age at={node.workers_last.at} /></>}</span>
      </div>
    </div>
  );
}
