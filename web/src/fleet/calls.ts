// What can be done to nodes and workers, and what the plane says it would come to. One function
// for each act, so that pages know no routes.
import type { components } from "muster-openapi";
import { act } from "@/api/client";
import { Problem } from "@/api/problem";
import type { NodeConsequence, PlacementPlan, ReleaseConsequence } from "./shapes";

type Schemas = components["schemas"];
export type NodeVerb = "drain" | "cordon" | "activate" | "retire" | "lost" | "unpin";
type Previewed = Exclude<NodeVerb, "unpin">;

/** An answer to a look that is no consequence: the plane did something else than it was asked. */
const unclear = () => new Problem("internal_error", "the plane did not say what it would come to", 200);
/** What its state does not allow is a refusal already before the act. */
function allowed<T extends { allowed: boolean; text: string }>(would: T): T {
  if (!would.allowed) throw new Problem("conflict", would.text, 409);
  return would;
}
const isLook = <T extends object>(answer: T): answer is Extract<T, { dry_run: boolean }> => "dry_run" in answer;

/** Does it to a node. */
export const actOnNode = (node: string, verb: NodeVerb, key: string) =>
  act("post", `/api/v1/fleet/nodes/{node}/${verb}`, { path: { node }, body: {}, key });

/** What it would come to. */
export async function wouldOnNode(node: string, verb: Previewed): Promise<NodeConsequence> {
  const answer = await act("post", `/api/v1/fleet/nodes/{node}/${verb}`, { path: { node }, query: { dry_run: true }, body: {} });
  if (!isLook(answer)) throw unclear();
  return allowed(answer);
}

export const pinNode = (node: string, state: string, key: string) =>
  act("post", "/api/v1/fleet/nodes/{node}/pin", { path: { node }, body: { state }, key });

export const deleteNode = (node: string, key: string) => act("delete", "/api/v1/fleet/nodes/{node}", { path: { node }, key });

export async function wouldDelete(node: string): Promise<NodeConsequence> {
  const answer = await act("delete", "/api/v1/fleet/nodes/{node}", { path: { node }, query: { dry_run: true } });
  if (!isLook(answer)) throw unclear();
  return allowed(answer);
}

/** Ends a worker; answers whether it has ended already. */
export async function releaseWorker(worker: string, key: string): Promise<boolean> {
  const answer = await act("post", "/api/v1/fleet/workers/{worker}/release", { path: { worker }, body: {}, key });
  return "ended" in answer && answer.ended;
}

export async function wouldRelease(worker: string): Promise<ReleaseConsequence> {
  const answer = await act("post", "/api/v1/fleet/workers/{worker}/release", { path: { worker }, query: { dry_run: true }, body: {} });
  if (!isLook(answer)) throw unclear();
  return allowed(answer);
}

/** Starts a worker again; answers what became of its new process. */
export async function restartWorker(worker: string, key: string): Promise<"runs" | "ended" | "under way"> {
  const answer = await act("post", "/api/v1/fleet/workers/{worker}/restart", { path: { worker }, body: {}, key });
  if (isLook(answer)) throw unclear();
  if (answer.under_way) return "under way";
  return answer.started ? "runs" : "ended";
}

export async function wouldRestart(worker: string): Promise<ReleaseConsequence> {
  const answer = await act("post", "/api/v1/fleet/workers/{worker}/restart", { path: { worker }, query: { dry_run: true }, body: {} });
  if (!isLook(answer)) throw unclear();
  return allowed(answer);
}

/** A placement as the form makes it: only what was chosen. */
export type Wanted = Pick<Schemas["Placement"], "command"> & { args: string[] } & Partial<Omit<Schemas["Placement"], "command" | "args" | "restart" | "queue">> & {
  restart?: string | { mode: string; max: number };
  queue?: string;
};
export type Placed = Schemas["PlacementMade"];

// The document says of `restart` and `queue` only that they are something.
const bodyOf = (wanted: Wanted) => wanted as unknown as Schemas["Placement"];

export async function place(wanted: Wanted, key: string): Promise<Placed> {
  const answer = await act("post", "/api/v1/fleet/workers", { body: bodyOf(wanted), key });
  if (isLook(answer)) throw unclear();
  return answer;
}

/** Where it would be placed, and why not elsewhere. */
export async function wouldPlace(wanted: Wanted): Promise<PlacementPlan> {
  const answer = await act("post", "/api/v1/fleet/workers", { query: { dry_run: true }, body: bodyOf(wanted) });
  if (!isLook(answer)) throw unclear();
  return answer;
}

export const endDoubt = (key: string) => act("post", "/api/v1/fleet/doubt/end", { key });
