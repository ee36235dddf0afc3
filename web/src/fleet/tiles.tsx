// The map: a tile for each node, small tiles above 60, one bar for each label above 400. A tile
// is a link; what it says in colour and shape it also says in words.
import { Link, path } from "@/router";
import { count } from "@/look/format";
import { Plain } from "@/parts/plain";
import { Glyph, StateMark } from "@/parts/state-mark";
import { Age } from "@/parts/values";
import { colourOf, lookOf } from "@/look/words";
import { drawnAs, partsOf, roomOf, saidOf, statesOf } from "./map";
import type { FleetNode, LabelSum } from "./shapes";
import { RoomBar, Squares } from "./squares";

const placeOf = (node: FleetNode) => path("fleet", "nodes", node.name);

/** What an operator wishes, where it is more than work. */
export function Wish({ node }: { node: FleetNode }) {
  if (node.pin) return <span className="text-wait">pinned {node.pin.state}</span>;
  if (node.wish === "active") return null;
  return <StateMark state={node.wish} evidence={`wished by an operator`} />;
}

export function Tiles({ nodes }: { nodes: FleetNode[] }) {
  return (
    <ul className="grid gap-2" style={{ gridTemplateColumns: "repeat(auto-fill, minmax(210px, 1fr))" }}>
      {nodes.map((node) => <Tile key={node.id} node={node} />)}
    </ul>
  );
}

function Tile({ node }: { node: FleetNode }) {
  const parts = partsOf(node);
  const quiet = node.state === "online" && !node.flapping;
  return (
    <li>
      <Link to={placeOf(node)} title={node.evidence}
        className={`flex h-full flex-col gap-2 rounded-sm border bg-surface p-2 no-underline hover:bg-hover hover:no-underline ${quiet ? "border-border" : "border-line"}`}>
        <span className="flex items-center justify-between gap-2">
          <b className="truncate"><Plain text={node.name} /></b>
          <span className="min-w-16 shrink-0 text-xs text-text-3"><span className="flush"><Age at={node.heard_at} plain reason="never heard" /></span></span>
        </span>
        <span className="flex flex-wrap items-center justify-between gap-x-2">
          <StateMark state={drawnAs(node)} evidence={node.evidence} />
          <Wish node={node} />
        </span>
        <Squares parts={parts} />
        <span className="flex flex-wrap justify-between gap-x-2 text-xs text-text-2">
          <span>{roomOf(node)}<span className="visually-hidden">: {saidOf(parts)}</span></span>
          <span className="truncate text-text-3">{node.kind === "relay" ? "Relay broker" : node.labels.join(" ")}</span>
        </span>
        {node.drift && <span className="flex items-center gap-1 text-xs text-wait"><Glyph shape="warning" /> drift</span>}
      </Link>
    </li>
  );
}

/** Small tiles: shape, colour and a bar; the name is there on focus and hover, and for readers. */
export function DenseTiles({ nodes }: { nodes: FleetNode[] }) {
  return (
    <ul className="grid gap-1" style={{ gridTemplateColumns: "repeat(auto-fill, minmax(44px, 1fr))" }}>
      {nodes.map((node) => {
        const { shape, colour } = lookOf(drawnAs(node));
        const parts = partsOf(node);
        const said = `${node.name}: ${drawnAs(node)}, ${roomOf(node)}. ${node.evidence}`;
        return (
          <li key={node.id} className="group relative">
            <Link to={placeOf(node)} title={said} aria-label={said}
              className="flex min-h-6 flex-col gap-1 rounded-sm border border-border bg-surface p-1 hover:border-line hover:no-underline">
              <span className="flex justify-between" style={{ color: colourOf(colour) }}>
                <Glyph shape={shape} />
                {node.drift && <Glyph shape="warning" colour={colourOf("wait")} />}
              </span>
              <RoomBar parts={parts} height={6} />
            </Link>
            <span aria-hidden className="pointer-events-none absolute top-full left-0 z-10 hidden rounded-sm border border-line bg-surface px-2 py-1 text-xs whitespace-nowrap group-focus-within:block group-hover:block">
              {node.name} · {roomOf(node)}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

/** One line for each label, summed by the plane; the number is the list that it counts. */
export function LabelBars({ labels }: { labels: LabelSum[] }) {
  const most = Math.max(1, ...labels.map((label) => label.nodes));
  return (
    <table className="w-full border-collapse">
      <caption className="visually-hidden">Nodes and their room, by label</caption>
      <thead className="text-left text-xs text-text-3">
        <tr><th className="py-1 pr-3">LABEL</th><th className="pr-3 text-right">NODES</th><th className="pr-3">STATES</th><th className="w-1/3 pr-3">ROOM</th><th>USED</th></tr>
      </thead>
      <tbody>
        {labels.map((label) => <LabelRow key={label.label} label={label} most={most} />)}
      </tbody>
    </table>
  );
}

function LabelRow({ label, most }: { label: LabelSum; most: number }) {
  const { used } = label;
  const known = used ?? 0;
  const parts = [
    { kind: "running" as const, count: known },
    { kind: "free" as const, count: label.capacity === null ? 0 : Math.max(0, label.capacity - known) },
    { kind: "unknown" as const, count: label.unknown },
  ];
  const query = new URLSearchParams({ label: label.label, view: "table" });
  return (
    <tr className="border-t border-border" style={{ height: "var(--row)" }}>
      <td className="max-w-[16rem] truncate pr-3">{label.label || "no label"}</td>
      <td className="pr-3 text-right">{label.label ? <Link to={`/fleet?${query}`} className="underline underline-offset-2">{count(label.nodes)}</Link> : count(label.nodes)}</td>
      <td className="pr-3">
        <span className="flex flex-wrap gap-x-2">
          {statesOf(label.states).map(([state, n]) => (
            <span key={state} className="flex items-center gap-1"><StateMark state={state} compact /> {count(n)}</span>
          ))}
        </span>
      </td>
      <td className="pr-3"><span className="block" style={{ width: `${Math.max(6, (label.nodes / most) * 100)}%` }}><RoomBar parts={parts} /></span></td>
      <td className="text-text-2">
        {label.capacity === null || used === null ? <span title={label.used_unknown ?? label.capacity_unknown}>{count(used)} of {label.capacity === null ? "?" : count(label.capacity)}</span> : `${count(used)}/${count(label.capacity)}`}
        {label.unknown > 0 && `, ${count(label.unknown)} ?`}
      </td>
    </tr>
  );
}
