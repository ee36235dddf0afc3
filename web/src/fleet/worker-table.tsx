// Workers of one node, or of all: the living, or those of the past too.
import { navigate, path } from "@/router";
import { type Column, VirtualTable } from "@/parts/table";
import { EmptyState, ErrorPanel, Skeleton } from "@/parts/says";
import { Plain } from "@/parts/plain";
import { Age, Num, Took, Unknown } from "@/parts/values";
import { EVIDENCE_MS, usePages } from "./data";
import { endOf } from "./exit";
import type { Worker, WorkerPage } from "./shapes";
import { WorkerMark } from "./worker-mark";

const COLUMNS: Column<Worker>[] = [
  { id: "name", head: "WORKER", width: "minmax(110px, 200px)", cell: (worker) => <b className="font-semibold"><Plain text={worker.name} /></b> },
  { id: "state", head: "STATE", width: "110px", cell: (worker) => <WorkerMark worker={worker} /> },
  { id: "confirmed", head: "CONFIRMED", width: "90px", align: "end", cell: (worker) => <Age at={worker.confirmed_at} plain reason="never confirmed by its node" /> },
  { id: "pid", head: "PID", width: "72px", align: "end", from: "sm", cell: (worker) => worker.pid === null ? <Unknown reason={worker.unknown_because ?? "no process now"} /> : worker.state === "unknown" ? <span className="text-text-3" title="as last known">{worker.pid} ?</span> : <span>{worker.pid}</span> },
  { id: "up", head: "UP", width: "88px", align: "end", from: "sm", cell: (worker) => worker.state === "running" && worker.started_at ? <Took from={worker.started_at} /> : <Unknown reason={worker.unknown_because ?? `it is ${worker.state}`} /> },
  { id: "restarts", head: "RESTARTS", width: "80px", align: "end", from: "lg", cell: (worker) => <Num value={worker.restarts} /> },
  { id: "agent", head: "AGENT", width: "minmax(60px, 140px)", from: "lg", cell: (worker) => worker.agent ?? <Unknown reason="no agent registered with its key" /> },
  { id: "command", head: "COMMAND", width: "minmax(100px, 1fr)", from: "sm", cell: (worker) => <code className="text-text-2" title={worker.command}><Plain text={worker.command} /></code> },
];

export function WorkerTable({ node, ended }: { node?: string; ended?: boolean }) {
  const pages = usePages<WorkerPage>("/api/v1/fleet/workers", { node, ended: ended || undefined, limit: 100 }, { refetchInterval: EVIDENCE_MS });
  const rows = pages.data?.pages.flatMap((page) => page.workers) ?? [];
  if (pages.isPending) return <Skeleton rows={3} what="workers" />;
  if (pages.error && rows.length === 0) return <ErrorPanel error={pages.error} what="workers" retry={() => void pages.refetch()} />;
  return (
    <VirtualTable
      label="Workers" rows={rows} columns={COLUMNS} idOf={(worker) => worker.id}
      to={(worker) => path("fleet", "workers", worker.id)} open={(worker) => navigate(path("fleet", "workers", worker.id))}
      second={(worker) => (worker.ended_at || worker.exit ? endOf(worker) : null)}
      more={pages.hasNextPage && !pages.isFetchingNextPage ? () => void pages.fetchNextPage() : undefined}
      empty={<EmptyState command={node ? `muster spawn --node ${node} -- CMD` : "muster spawn -- CMD"}>{ended ? "No worker was here." : "No worker runs here."}</EmptyState>}
    />
  );
}
