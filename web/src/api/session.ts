// Who the reader is to the plane, and what their key may do. Unknown until the plane has said it;
// unknown bars nothing, because only the plane refuses.
import { useQuery } from "@tanstack/react-query";
import type { components } from "muster-openapi";
import { get } from "./client";
import type { Problem } from "./problem";
import { SESSION_KEY } from "./queries";

export type Session = components["schemas"]["SessionShown"];

function useAsked(enabled = true) {
  return useQuery<Session, Problem>({
    queryKey: SESSION_KEY,
    queryFn: ({ signal }) => get("/api/v1/session", { signal }),
    staleTime: 60_000,
    enabled,
  });
}

export const useSession = (enabled = true): Session | undefined => useAsked(enabled).data;

/**
 * Whether this reader may read what wants a scope, so that nothing is asked for only to be
 * refused. Undefined while the plane has not said who they are; where it cannot say it, it decides.
 */
export function useMay(scope: string, unless?: (session: Session) => boolean): boolean | undefined {
  const { data: session, isError } = useAsked();
  if (!session) return isError ? true : undefined;
  return covers(session.scopes, scope) || (unless?.(session) ?? false);
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
