// Nodes as a table, paged and filtered by the plane: what the map shows, in words.
import { navigate, path } from "@/router";
import { type Column, VirtualTable } from "@/parts/table";
import { EmptyState, ErrorPanel, Skeleton } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";
import { Age, Unknown } from "@/parts/values";
import { EVIDENCE_MS, usePages } from "./data";
import { drawnAs, roomOf } from "./map";
import type { FleetNode, NodePage } from "./shapes";
import { Wish } from "./tiles";

const COLUMNS: Column<FleetNode>[] = [
  { id: "name", head: "NODE", width: "minmax(90px, 160px)", cell: (node) => <b className="font-semibold">{node.name}</b> },
  { id: "state", head: "STATE", width: "120px", cell: (node) => <StateMark state={drawnAs(node)} evidence={node.evidence} /> },
  { id: "heard", head: "HEARD", width: "72px", align: "end", cell: (node) => <><span className="card-only">heard </span><Age at={node.heard_at} plain reason="never heard" /></> },
  { id: "workers", head: "WORKERS", width: "minmax(110px, 170px)", cell: (node) => <span title={node.workers_reason ?? undefined}>{roomOf(node)}<span className="card-only">{node.workers === null ? "" : " workers"}</span></span> },
  { id: "load", head: "LOAD", width: "64px", align: "end", from: "lg", cell: (node) => node.load === null ? <Unknown reason={node.load_reason ?? undefined} /> : node.load.toFixed(2) },
  { id: "wish", head: "WISH", width: "110px", from: "sm", cell: (node) => node.wish === "active" && !node.pin ? <span className="text-text-3">active</span> : <Wish node={node} /> },
  { id: "evidence", head: "EVIDENCE", width: "minmax(120px, 1fr)", from: "sm", cell: (node) => <span className="text-text-2" title={node.evidence}>{node.drift && <span className="text-wait">drift · </span>}{node.evidence}</span> },
  { id: "labels", head: "LABELS", width: "minmax(60px, 160px)", from: "lg", cell: (node) => <span className="text-text-2" title={node.labels.join(" ")}>{node.labels.join(" ") || <Unknown reason="it has no labels" />}</span> },
];

/** Where there is no column for the evidence, it is the second line. */
const NARROW = window.matchMedia("(max-width: 639px)");

export type NodeFilter = { state?: string; label?: string; q?: string };

export function useNodePages(filter: NodeFilter, limit: number, sort: "need" | "name", enabled = true) {
  return usePages<NodePage>(
    "/api/v1/fleet/nodes",
    { state: filter.state || undefined, label: filter.label || undefined, q: filter.q || undefined, sort, limit },
    { refetchInterval: EVIDENCE_MS, enabled },
  );
}

export function NodeTable({ filter, clear }: { filter: NodeFilter; clear(): void }) {
  const pages = useNodePages(filter, 100, "need");
  const rows = pages.data?.pages.flatMap((page) => page.nodes) ?? [];
  const first = pages.data?.pages[0];
  if (pages.isPending) return <Skeleton what="nodes" />;
  if (pages.error && !first) return <ErrorPanel error={pages.error} what="nodes" retry={() => void pages.refetch()} />;
  return (
    <VirtualTable
      label="Nodes" rows={rows} columns={COLUMNS} idOf={(node) => node.id} total={first?.total ?? null}
      to={(node) => path("fleet", "nodes", node.name)} open={(node) => navigate(path("fleet", "nodes", node.name))}
      second={NARROW.matches ? (node) => (node.state === "online" && !node.drift ? null : node.evidence) : undefined}
      more={pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : undefined}
      empty={
        <EmptyState>
          No node matches. <button type="button" className="text-accent underline underline-offset-2" onClick={clear}>Clear the filter</button>
        </EmptyState>
      }
    />
  );
}
