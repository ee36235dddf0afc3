// What can be done to nodes and workers, and what the plane says it would come to. One function
// for each act, so that pages know no routes.
import { addressOf, send } from "@/api/client";
import { Problem } from "@/api/problem";
import type { NodeConsequence, NodeWhole, PlacementPlan, ReleaseConsequence, Worker } from "./shapes";

/** A plane that ignores `dry_run` would act: nothing is asked of it until it is known to preview. */
const PREVIEWS = false;

async function call<T>(method: string, route: string, ask: { path?: object; query?: object; body?: unknown; key?: string }): Promise<T> {
  if (ask.query && !PREVIEWS) throw new Problem("not_supported", "this plane cannot say what it would come to", 501);
  const answer = await send(addressOf(route, ask), {
    method,
    headers: {
      accept: "application/json",
      "content-type": "application/json",
      ...(ask.key ? { "idempotency-key": ask.key } : {}),
    },
    body: JSON.stringify(ask.body ?? {}),
  });
  return (await answer.json()) as T;
}

export type NodeVerb = "drain" | "cordon" | "activate" | "retire" | "lost" | "unpin";

/** Does it to a node. */
export const actOnNode = (node: string, verb: NodeVerb, key: string) =>
  call<NodeWhole>("POST", `/api/v1/fleet/nodes/{node}/${verb}`, { path: { node }, key });

/** What it would come to. */
export const wouldOnNode = (node: string, verb: NodeVerb) =>
  call<NodeConsequence>("POST", `/api/v1/fleet/nodes/{node}/${verb}`, { path: { node }, query: { dry_run: true } });

export const pinNode = (node: string, state: string, key: string) =>
  call<NodeWhole>("POST", "/api/v1/fleet/nodes/{node}/pin", { path: { node }, body: { state }, key });

export const deleteNode = (node: string, key: string) =>
  call<{ deleted: string }>("DELETE", "/api/v1/fleet/nodes/{node}", { path: { node }, key });

export const wouldDelete = (node: string) =>
  call<NodeConsequence>("DELETE", "/api/v1/fleet/nodes/{node}", { path: { node }, query: { dry_run: true } });

export const releaseWorker = (worker: string, key: string) =>
  call<{ ended: boolean; worker: Worker }>("POST", "/api/v1/fleet/workers/{worker}/release", { path: { worker }, key });

export const wouldRelease = (worker: string) =>
  call<ReleaseConsequence>("POST", "/api/v1/fleet/workers/{worker}/release", { path: { worker }, query: { dry_run: true } });

export type Wanted = {
  command: string;
  args: string[];
  cwd?: string;
  env?: Record<string, string>;
  io?: string;
  restart?: string | { mode: string; max: number };
  node?: string;
  target_labels?: string[];
  labels?: string[];
  name?: string;
  queue?: string;
};

export type Placed = { worker: Worker; repeated: boolean; started?: boolean };

export const place = (body: Wanted, key: string) => call<Placed>("POST", "/api/v1/fleet/workers", { body, key });

/** Where it would be placed, and why not elsewhere. */
export const wouldPlace = (body: Wanted) =>
  call<PlacementPlan>("POST", "/api/v1/fleet/workers", { body, query: { dry_run: true } });

export const endDoubt = (key: string) => call<{ ended: boolean }>("POST", "/api/v1/fleet/doubt/end", { key });
