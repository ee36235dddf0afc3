// The fleet: where is work, and what do we not know. Map or table, drift, placements that wait,
// and the form that places a worker.
import { useSearch, setQuery, useQuery } from "@/router";
import { useGet } from "@/api/queries";
import { KeyHint } from "@/parts/key-hint";
import { Misread } from "@/parts/misread";
import { EmptyState, ErrorPanel, Panel, Skeleton, AsOf } from "@/parts/says";
import { PageHead, useTitle } from "@/shell/crumbs";
import { useKeys } from "@/shell/keys";
import { EVIDENCE_MS, aboutFleet, useStale } from "./data";
import { DriftLines, Waiting } from "./drift";
import { FleetStrip } from "./fleet-strip";
import { densityOf } from "./map";
import { type NodeFilter, NodeTable, useNodePages } from "./node-table";
import type { Fleet } from "./shapes";
import { Spawn } from "./spawn";
import { Legend } from "./squares";
import { Doubt, Summary } from "./summary";
import { DenseTiles, LabelBars, Tiles } from "./tiles";

const ROUTES = ["/api/v1/fleet"];
/** As many as dense tiles are drawn of. */
const MAP_MAX = 400;

export default function FleetPage() {
  const search = useSearch();
  const [state] = useQuery("state");
  const [label] = useQuery("label");
  const [q, setQ] = useQuery("q");
  const [asked] = useQuery("view");
  const view = asked === "table" || asked === "map" ? asked : window.innerWidth < 640 ? "table" : "map";
  const [spawning, setSpawning] = useQuery("spawn");
  const filter: NodeFilter = { state, label, q };
  useStale(["fleet"], ROUTES, aboutFleet);
  const fleet = useGet("/api/v1/fleet", {}, { refetchInterval: EVIDENCE_MS });
  const drift = useGet("/api/v1/fleet/drift");
  const placements = useGet("/api/v1/fleet/placements", {}, { refetchInterval: EVIDENCE_MS });
  const said = fleet.data;
  const troubled = said && Object.entries(said.nodes).find(([word, n]) => word !== "online" && n > 0);
  useTitle("Fleet", troubled ? troubled[0] : undefined);
  const clear = () => setQuery({ state: null, label: null, q: null });
  const toggle = () => setQuery({ view: view === "table" ? "map" : "table" });
  useKeys([
    { key: "t", does: "map or table", run: toggle },
    { key: "Shift+S", does: "spawn a worker", run: () => setSpawning("1") },
  ]);
  const total = said ? Object.values(said.nodes).reduce((sum, n) => sum + n, 0) : 0;
  const filtered = Boolean(state || label || q);
  return (
    <>
      <PageHead
        crumbs={<h1>Fleet</h1>}
        acts={
          <>
            <button type="button" className="button" aria-pressed={spawning !== ""} onClick={() => setSpawning(spawning ? null : "1")}>Spawn<KeyHint k="Shift+S" /></button>
            <button type="button" className="button" onClick={toggle}>{view === "table" ? "Map" : "Table"} <KeyHint k="t" /></button>
          </>
        }
      />
      <div className="flex flex-col gap-4">
        {fleet.isPending && <Skeleton rows={1} what="the fleet" />}
        {fleet.error && !said && <ErrorPanel error={fleet.error} what="the fleet" retry={() => void fleet.refetch()} />}
        {fleet.error && said && <AsOf at={fleet.dataUpdatedAt} />}
        {said && <Doubt fleet={said} refresh={() => void fleet.refetch()} />}
        {said && <Summary fleet={said} chosen={state} />}
        {spawning && <Panel what="the form"><Spawn close={() => setSpawning(null)} node={search.get("on") ?? ""} /></Panel>}
        {said && total === 0 && !filtered && (
          <EmptyState command="muster nodes enroll edge-1">
            There is no machine yet. Make a token for one, then run what it prints on that machine.
          </EmptyState>
        )}
        {said && (total > 0 || filtered) && (
          <section aria-label="Nodes" className="flex flex-col gap-2">
            <div className="flex flex-wrap items-center gap-3">
              <input className="field w-48" type="search" placeholder="name" aria-label="Nodes whose name contains" defaultValue={q} onChange={(event) => setQ(event.target.value)} />
              {label && <Chip text={`label ${label}`} clear={() => setQuery({ label: null })} />}
              {state && <Chip text={state} clear={() => setQuery({ state: null })} />}
              {asked !== "" && asked !== view && <Misread of="view" value={asked} shown={`the ${view}`} />}
              {view !== "table" && <Legend />}
            </div>
            <Panel what="nodes">
              {view === "table" ? <NodeTable filter={filter} clear={clear} /> : <NodeMap filter={filter} fleet={said} total={total} clear={clear} />}
            </Panel>
          </section>
        )}
        {drift.data && <DriftLines drift={drift.data.drift} />}
        {drift.error && !drift.data && <ErrorPanel error={drift.error} what="drift" retry={() => void drift.refetch()} />}
        {placements.data && <Waiting placements={placements.data} />}
        {placements.error && !placements.data && <ErrorPanel error={placements.error} what="placements that wait" retry={() => void placements.refetch()} />}
        {said && total > 0 && <Panel what="the history"><FleetStrip /></Panel>}
      </div>
    </>
  );
}

function Chip({ text, clear }: { text: string; clear(): void }) {
  return (
    <button type="button" className="min-h-6 rounded-sm bg-selected px-2" onClick={clear} aria-label={`Do not filter by ${text}`}>{text} ✕</button>
  );
}

function NodeMap({ filter, fleet, total, clear }: { filter: NodeFilter; fleet: Fleet; total: number; clear(): void }) {
  const matching = filter.state ? (fleet.nodes[filter.state] ?? 0) : total;
  const wide = densityOf(filter.label || filter.q ? Math.min(matching, MAP_MAX) : matching) === "bars";
  const pages = useNodePages(filter, MAP_MAX, "name", !wide);
  if (wide) {
    return filter.state ? <NodeTable filter={filter} clear={clear} /> : <LabelBars labels={fleet.labels} />;
  }
  const nodes = pages.data?.pages.flatMap((page) => page.nodes) ?? [];
  if (pages.isPending) return <Skeleton rows={3} what="nodes" />;
  if (pages.error && nodes.length === 0) return <ErrorPanel error={pages.error} what="nodes" retry={() => void pages.refetch()} />;
  if (nodes.length === 0) {
    return (
      <EmptyState>
        0 of {total} match. <button type="button" className="text-accent underline underline-offset-2" onClick={clear}>Clear the filter</button>
      </EmptyState>
    );
  }
  return (
    <>
      {pages.error && <AsOf at={pages.dataUpdatedAt} />}
      {densityOf(nodes.length) === "tiles" ? <Tiles nodes={nodes} /> : <DenseTiles nodes={nodes} />}
      {pages.hasNextPage && <p className="pt-2 text-text-2">The first {nodes.length} of {pages.data?.pages[0]?.total ?? "more"}; filter, or see the table.</p>}
    </>
  );
}
