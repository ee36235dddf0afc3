// One worker: is it alive and since when is that confirmed, why did it end last, what does it say.
// Its terminal is loaded when somebody opens it.
import type { ReactNode } from "react";
import { useGet } from "@/api/queries";
import { count } from "@/look/format";
import { ForScope } from "@/login/ask";
import { Link, navigate, path, usePath, useQuery } from "@/router";
import { KeyHint } from "@/parts/key-hint";
import { late } from "@/parts/late";
import { Plain } from "@/parts/plain";
import { AsOf, EmptyState, ErrorPanel, Panel, Skeleton } from "@/parts/says";
import { Age, Id, Took, Unknown } from "@/parts/values";
import { WhyPanel } from "@/parts/why";
import { PageHead, useTitle } from "@/shell/crumbs";
import { useKeys } from "@/shell/keys";
import { EVIDENCE_MS, aboutFleet, useStale } from "./data";
import { endOf } from "./exit";
import { History } from "./history";
import { Output } from "./output";
import type { Worker } from "./shapes";
import { WorkerActs } from "./worker-acts";
import { WorkerMark } from "./worker-mark";

const Terminal = late(() => import("@/terminal/terminal"), <Skeleton rows={12} what="the terminal" />);
const ROUTES = ["/api/v1/fleet/workers/"];

export default function WorkerPage({ worker }: { worker: string }) {
  const asked = useGet("/api/v1/fleet/workers/{worker}", { path: { worker } }, { refetchInterval: EVIDENCE_MS, keep: true });
  const known = asked.data as Worker | undefined;
  const open = usePath().endsWith("/terminal");
  const [why, setWhy] = useQuery("why");
  useStale(known ? [`worker:${known.id}`] : [], ROUTES, aboutFleet);
  useTitle(known?.name ?? worker, known?.state);
  const here = path("fleet", "workers", worker);
  const toggle = () => navigate(open ? here : `${here}/terminal`, { replace: true });
  useKeys([
    { key: "w", does: "why", run: () => setWhy(why ? null : "1") },
    { key: "Enter", does: "open the terminal", run: () => !open && toggle() },
  ]);
  const runs = known !== undefined && known.ended_at === null && known.state !== "queued" && known.io !== "pipes";
  return (
    <>
      <PageHead
        crumbs={
          <>
            <Link to="/fleet" className="text-text-2">Fleet</Link><span className="text-text-3">/</span>
            {known?.node && <><Link to={path("fleet", "nodes", known.node_name ?? known.node)} className="text-text-2">{known.node_name ?? known.node}</Link><span className="text-text-3">/</span></>}
            <h1><Plain text={known?.name ?? worker} /></h1>
            {known && <Id id={known.id} />}
          </>
        }
        acts={
          known && (
            <>
              {runs && <button type="button" className="button" data-primary={!open || undefined} aria-pressed={open} onClick={toggle}>{open ? "Close the terminal" : "Terminal"}{!open && <KeyHint k="Enter" />}</button>}
              <Panel what="the acts"><WorkerActs key={known.id} worker={known} /></Panel>
            </>
          )
        }
      />
      {asked.isPending && <Skeleton what={`worker ${worker}`} />}
      {asked.error && !known && (asked.error.notFound
        ? <EmptyState command="muster spawn -- CMD">There is no worker {worker}. Ended ones go after their retention.</EmptyState>
        : <ErrorPanel error={asked.error} what={`worker ${worker}`} retry={() => void asked.refetch()} />)}
      {known && (
        <div className="flex flex-col gap-6">
          <Panel what="the verdict"><Verdict worker={known} why={() => setWhy(why ? null : "1")} open={why !== ""} /></Panel>
          {asked.error && <AsOf at={asked.dataUpdatedAt} />}
          {why && <Panel what="why"><WhyPanel id={known.id} /></Panel>}
          {open && (
            <Panel what="the terminal">
              <ForScope scope="operate" what="Watching a terminal">
                <Terminal worker={known.id} name={known.name} />
              </ForScope>
            </Panel>
          )}
          {!open && <Panel what="what it is"><Particulars worker={known} /></Panel>}
          {(!open || known.exit) && <Panel what="the last output"><Output worker={known} /></Panel>}
          <Panel what="the history"><History of="workers" id={known.id} /></Panel>
        </div>
      )}
    </>
  );
}

function Verdict({ worker, why, open }: { worker: Worker; why(): void; open: boolean }) {
  return (
    <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-base">
      <WorkerMark worker={worker} />
      <span><Plain text={worker.evidence} /></span>
      {worker.confirmed_at && !/confirmed/.test(worker.evidence ?? "") && <span className="text-text-2">confirmed <Age at={worker.confirmed_at} /></span>}
      {worker.pid !== null && <span className="text-text-2">{worker.state === "unknown" ? "last known pid" : "pid"} {worker.pid}</span>}
      {worker.state === "running" && worker.started_at && <span className="text-text-2">up <Took from={worker.started_at} /></span>}
      {worker.ended_at && <span className="text-text-2">{endOf(worker)}</span>}
      <button type="button" className="text-accent underline underline-offset-2" aria-expanded={open} onClick={why}>why</button>
    </p>
  );
}

function Particulars({ worker }: { worker: Worker }) {
  const target = worker.target.node ?? (worker.target.labels.length > 0 ? worker.target.labels.join(" ") : "anywhere");
  const { mode, max } = worker.restart;
  const rows: [string, ReactNode][] = [
    ["command", <code key="c" className="break-all"><Plain text={worker.command} /></code>],
    ["agent", worker.agent ? <Link key="a" to={path("agents", worker.agent)} className="underline underline-offset-2">{worker.agent}</Link> : <Unknown key="a" reason="no agent registered with its key" />],
    ["restart", mode === "never" ? "never" : `${mode}, ${count(worker.restarts)}${max === null ? "" : ` of ${count(max)}`} used`],
    ["asked for", target],
    ["labels", worker.labels.join(" ") || "none"],
    ["input and output", worker.io ?? <Unknown key="i" reason="not reported by node" />],
    ["placed", <><Age key="at" at={worker.created_at} /> by {worker.principal ?? <Unknown reason={worker.principal_reason ?? undefined} />}{worker.adopted && ", its node brought it"}</>],
  ];
  if (worker.next_start_at) rows.push(["starts again", <Age key="n" at={worker.next_start_at} due />]);
  if (worker.place_by) rows.push(["gives up", <Age key="g" at={worker.place_by} due />]);
  if (worker.waits_for) rows.push(["waits for", worker.waits_for]);
  if (worker.release) rows.push(["to end", <><Age key="r" at={worker.release.at} /> by {worker.release.by}{worker.release.reason && `: ${worker.release.reason}`}</>]);
  if (worker.unknown_because) rows.push(["not known", worker.unknown_because.replaceAll("_", " ")]);
  return (
    <dl className="grid grid-cols-[max-content_1fr] gap-x-4 gap-y-1">
      {rows.map(([name, value]) => (
        <div key={name} className="contents"><dt className="text-text-3">{name}</dt><dd className="min-w-0">{value}</dd></div>
      ))}
    </dl>
  );
}
