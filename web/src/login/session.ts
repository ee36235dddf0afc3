// Who this browser is to the plane: whether it is signed in, as whom, and what it may. Keys are
// sent once, by POST, and kept nowhere here: the session is a cookie that no script can read.
import { send } from "@/api/client";
import { Problem } from "@/api/problem";
import type { components } from "muster-openapi";
import { queries } from "@/api/queries";
import { reconnectNow } from "@/live/stream";

export { useSession } from "@/api/session";

/** A browser is signed in. */
export type SignedIn = components["schemas"]["SessionStarted"];

const ROUTE = "/api/v1/session";

/** Signs in with a key or a one-use code. Everything that was refused is asked for again. */
export async function signIn(given: { key: string } | { code: string }): Promise<SignedIn> {
  const answer = await send(ROUTE, {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify(given),
  });
  const session = (await answer.json()) as SignedIn;
  // Everything that was refused, or read as somebody else, is asked for again.
  reconnectNow();
  await queries.invalidateQueries();
  return session;
}

/** Ends the session. */
export async function signOut(): Promise<void> {
  await send(ROUTE, { method: "DELETE", headers: { "content-type": "application/json" } });
  await queries.resetQueries();
}

/** What a failed sign-in says: never which part was wrong. */
export function saidOfRefusal(error: unknown): string {
  const problem = Problem.of(error);
  if (problem.status === 401) return "That key is not known or was revoked.";
  return problem.message;
}
