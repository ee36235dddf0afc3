// What is drawn of a node: how many squares of which kind, and how dense the map is. Takes the
// plane's numbers as they are; decides no state and adds up nothing that the plane does not know.
import type { FleetNode } from "./shapes";

/** `running` confirmed; `last`: as last known; `free`; `unknown`: nobody knows what is there. */
export type Square = "running" | "free" | "last" | "unknown";
export type Part = { kind: Square; count: number };

/** The parts of a node's room, in drawing order. Empty: a node without workers and without bound. */
export function partsOf(node: FleetNode): Part[] {
  const parts: Part[] = [];
  const add = (kind: Square, count: number) => {
    if (count > 0) parts.push({ kind, count });
  };
  if (node.workers === null) {
    const last = node.workers_last?.value ?? 0;
    add("last", last);
    add("unknown", node.max_workers === null ? (last === 0 ? 1 : 0) : node.max_workers - last);
    return parts;
  }
  // Only what an online node says is confirmed; of a suspect one it is what it last said.
  add(node.state === "online" ? "running" : "last", node.workers);
  if (node.free !== null) add("free", node.free);
  else if (node.max_workers !== null) add("unknown", node.max_workers - node.workers);
  return parts;
}

/** The room in words: `3/8`, `3/8 as last known`, `? last known 5`, `2, no bound`. */
export function roomOf(node: FleetNode): string {
  if (node.workers === null) {
    return node.workers_last ? `? last known ${node.workers_last.value}` : "? workers not known";
  }
  const bound = node.max_workers === null ? `${node.workers}, no bound` : `${node.workers}/${node.max_workers}`;
  const over = node.max_workers === null ? 0 : Math.max(0, node.workers - node.max_workers);
  const said = over > 0 ? `${bound}, ${over} over its bound` : bound;
  return node.state === "online" ? said : `${said} as last known`;
}

const WORDS: Record<Square, string> = {
  running: "running", free: "free", last: "as last known", unknown: "not known",
};

/** The drawing in a sentence, for whoever does not see it. */
export function saidOf(parts: Part[]): string {
  if (parts.length === 0) return "no workers";
  return parts.map((part) => `${part.count} ${WORDS[part.kind]}`).join(", ");
}

export type Density = "tiles" | "dense" | "bars";

/** Tiles with names up to 60 nodes, small ones up to 400, above that one bar for each label. */
export function densityOf(total: number): Density {
  if (total <= 60) return "tiles";
  return total <= 400 ? "dense" : "bars";
}

const ORDER = ["lost", "unreachable", "flapping", "suspect", "connecting", "online"];

/** The states that are there, the worst first; words we do not know come before all. */
export function statesOf(counts: Record<string, number>): [state: string, count: number][] {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b) || a.localeCompare(b));
}

/** The state that a node is drawn with: damped changes are shown as such. */
export const drawnAs = (node: { state: string; flapping: boolean }) => (node.flapping ? "flapping" : node.state);
