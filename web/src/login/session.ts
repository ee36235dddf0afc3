// Who this browser is to the plane: whether it is signed in, as whom, and what it may. Keys are
// sent once, by POST, and kept nowhere here: the session is a cookie that no script can read.
import { useQuery } from "@tanstack/react-query";
import { send } from "@/api/client";
import { Problem } from "@/api/problem";
import { queries } from "@/api/queries";

// A local type until the document has it.
export type Session = {
  signed_in: boolean;
  principal?: string | null;
  scopes: string[];
  key_id?: string | null;
  prefix?: string | null;
  loopback?: boolean;
  expires_at?: string | null;
};

const ROUTE = "/api/v1/session";
export const SESSION_KEY = [ROUTE] as const;

/** The session. Unknown while it was never asked for, or when the plane does not answer. */
export function useSession() {
  return useQuery<Session, Problem>({
    queryKey: SESSION_KEY,
    queryFn: async ({ signal }) => {
      const answer = await send(ROUTE, { headers: { accept: "application/json" }, signal });
      return (await answer.json()) as Session;
    },
    staleTime: 60_000,
  });
}

/** Signs in with a key or a one-use code. Everything that was refused is asked for again. */
export async function signIn(given: { key: string } | { code: string }): Promise<Session> {
  const answer = await send(ROUTE, {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify(given),
  });
  const session = (await answer.json()) as Session;
  await queries.invalidateQueries();
  return session;
}

/** Ends the session. */
export async function signOut(): Promise<void> {
  await send(ROUTE, { method: "DELETE", headers: { "content-type": "application/json" } });
  queries.clear();
  await queries.invalidateQueries();
}

/** What a failed sign-in says: never which part was wrong. */
export function saidOfRefusal(error: unknown): string {
  const problem = Problem.of(error);
  if (problem.needsKey) return "That key is not known or was revoked.";
  return problem.message;
}

/** Whether a session may do what needs a scope: `admin` may all, `operate` what a person decides. */
export function may(session: Session | undefined, scope: "read" | "operate" | "admin"): boolean | undefined {
  if (!session) return undefined;
  const scopes = session.signed_in ? session.scopes : session.loopback ? ["read", "call"] : [];
  return scopes.includes("admin") || scopes.includes(scope) || (scope === "read" && scopes.includes("operate") && session.loopback === true);
}
