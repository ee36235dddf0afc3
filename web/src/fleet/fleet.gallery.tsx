// The fleet's parts with made-up nodes: tiles of every state, small tiles, bars for labels, the
// head in numbers, a past as a strip.
import type { Gallery } from "@/gallery/gallery";
import { planeNow } from "@/live/clock";
import type { Fleet, FleetNode, StateBucket } from "./shapes";
import { Legend, Squares } from "./squares";
import { Strip } from "./strip";
import { Doubt, Summary } from "./summary";
import { DenseTiles, LabelBars, Tiles } from "./tiles";

const ago = (ms: number) => new Date(planeNow() - ms).toISOString();
const node = (name: string, more: Partial<FleetNode>): FleetNode => ({
  id: `node_${name}`, name, kind: "muster", state: "online", state_at: ago(3_600_000), evidence: "acknowledged 2 s ago", flapping: false, wish: "active", labels: [], max_workers: 8, version: "muster/0.1.0", host: "made-up",
  worker_names: [], drift: false, heard_at: ago(2_000), next: null, load: 0.4, workers: 8, free: 0, ...more,
} as unknown as FleetNode);
const unreachable = { state: "unreachable", workers: null, free: null, workers_last: { value: 5, at: ago(8_460_000) }, workers_reason: "unreachable for 2 h 21 m", heard_at: ago(8_460_000), evidence: "last heard 2 h 21 m ago" } as Partial<FleetNode>;

export const NODES: FleetNode[] = [
  node("edge-1", { labels: ["gpu"] }),
  node("edge-2", { state: "suspect", workers: 3, free: null, heard_at: ago(17_000), evidence: "3 beats missed, socket open" }),
  node("mini-7", unreachable),
  node("mini-8", { ...unreachable, workers_last: undefined, max_workers: null, heard_at: null }),
  node("gone-1", { ...unreachable, state: "lost" }),
  node("swing", { flapping: true, workers: 2, free: 6 }),
  node("full", { workers: 10, max_workers: 8, free: 0, drift: true }),
  node("empty", { workers: 0, free: 8, wish: "cordoned" }),
  node("big", { workers: 40, free: 24, max_workers: 64, pin: { state: "online", by: "owner", at: ago(60_000) } as FleetNode["pin"] }),
  node("relay-a", { kind: "relay", workers: 2, max_workers: null, free: null }),
  node("new", { state: "connecting", workers: null, free: null, heard_at: null }),
  node("later", { state: "levitating" as FleetNode["state"] }),
];
const fleet = (nodes: Record<string, number>, capacity: object, more: object = {}): Fleet => ({ as_of: ago(0), position: "x", nodes, workers: {}, queued: 0, drifting: 0, late_frames: 0, doubt: null, alarms: [], labels: [], capacity, ...more }) as unknown as Fleet;
const buckets: StateBucket[] = Array.from({ length: 96 }, (_, n) => ({
  from: ago((96 - n) * 900_000), to: ago((95 - n) * 900_000), plane_down: n > 40 && n < 46, state: n < 8 || (n > 40 && n < 46) ? null : n < 60 ? "online" : n < 70 ? "suspect" : n < 80 ? "unreachable" : n < 84 ? "lost" : "online",
}));

const gallery: Gallery = {
  title: "NodeTile, fleet",
  states: [
    { name: "tiles: every state", wide: true, show: () => <Tiles nodes={NODES} /> },
    { name: "small tiles", show: () => <DenseTiles nodes={NODES} /> },
    { name: "bars for labels", show: () => <LabelBars labels={[{ label: "gpu", nodes: 40, states: { online: 38, unreachable: 2 }, used: 120, capacity: 160, unknown: 16 }, { label: "", nodes: 4, states: { online: 4 }, used: 2, capacity: null, unknown: 0, capacity_unknown: "one of them has no bound" }] as unknown as Fleet["labels"]} /> },
    { name: "legend, squares of a node without workers", show: () => <span className="flex gap-6"><Legend /><Squares parts={[]} /></span> },
    { name: "head: all reachable", show: () => <Summary fleet={fleet({ online: 4 }, { reachable: 32, used: 11, unknown: 0 })} chosen="" /> },
    { name: "head: a part is silent", show: () => <Summary fleet={fleet({ online: 2, suspect: 1, unreachable: 1 }, { reachable: 16, used: 11, unknown: 8, unknown_since: ago(8_460_000) })} chosen="suspect" /> },
    { name: "head: all is silent, just now", show: () => <Summary fleet={fleet({ unreachable: 1 }, { reachable: 0, used: 0, unknown: 4, unknown_since: ago(0) })} chosen="" /> },
    { name: "head: not known", show: () => <Summary fleet={fleet({}, { reachable: null, reachable_reason: "the plane has just started", used: null, unknown: null })} chosen="" /> },
    { name: "the plane doubts itself", show: () => <Doubt fleet={fleet({}, {}, { doubt: { evidence: "7 of 12 nodes fell silent within 60 s", since: ago(60_000) } })} refresh={() => {}} /> },
    { name: "a past day", show: () => <Strip buckets={buckets} label="24 h" /> },
  ],
};
export default gallery;
