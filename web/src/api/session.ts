// Who the reader is to the plane, and what their key may do. Unknown until the plane has said it;
// unknown bars nothing, because only the plane refuses.
import { useQuery } from "@tanstack/react-query";
import { Problem } from "./problem";
import { send } from "./client";

export type Session = {
  signed_in: boolean;
  /** `session`, `key`, `loopback`, `nobody`. */
  by: string;
  principal: string | null;
  scopes: string[];
  loopback: boolean;
  needs: { scope: string; what: string }[];
};

export const SESSION_KEY = ["/api/v1/session"] as const;

export function useSession(enabled = true): Session | undefined {
  return useQuery<Session | null, Problem>({
    queryKey: SESSION_KEY,
    queryFn: async ({ signal }) => {
      try {
        return (await (await send("/api/v1/session", { signal })).json()) as Session;
      } catch (error) {
        if (Problem.of(error).notFound) return null;
        throw error;
      }
    },
    staleTime: 60_000,
    enabled,
  }).data ?? undefined;
}

/** Whether a set of scopes covers one: `admin` and `owner` cover all, `agent` covers `agent:ID`. */
export const covers = (scopes: readonly string[], wanted: string) =>
  scopes.some((scope) => scope === wanted || scope === "admin" || scope === "owner" || wanted.startsWith(`${scope}:`));

/** The sentence for a scope that is missing, or undefined when it is there or not known. */
export function useMissing(scope: string | undefined): string | undefined {
  const session = useSession(scope !== undefined);
  if (!scope || !session || covers(session.scopes, scope)) return undefined;
  if (!session.needs.some((need) => need.scope === scope)) return undefined;
  return `needs ${scope}${session.signed_in ? ": your key has only " + session.scopes.join(", ") : ": sign in first"}`;
}
