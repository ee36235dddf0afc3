// Who holds, since when and why: wherever a hold is shown. A hold of an older plane has nobody and
// no time: then that, with the reason.
import { useGet } from "@/api/queries";
import { Plain } from "./plain";
import { Lasting, Unknown } from "./values";

export type HoldSaid = { by?: string | null; by_unknown?: string; since?: string | null; reason?: string };

/** Said of a hold whose answer does not say why it has nobody. */
export const BY_UNKNOWN = "it was held by an older build, which did not keep by whom";

/** `by ada for 2 h: deploy`. */
export function HeldWords({ hold }: { hold: HoldSaid }) {
  const unknown = hold.by_unknown ?? "the plane does not say";
  return (
    <>
      by {hold.by ? <Plain text={hold.by} /> : <Unknown reason={unknown} />}
      {" "}{hold.since ? <Lasting at={hold.since} /> : <>since <Unknown reason={unknown} /></>}
      {hold.reason && <>: <Plain text={hold.reason} /></>}
    </>
  );
}

/** Since when the hold stands that holds this agent: everything's, or its own. */
export function HeldSince({ agent }: { agent: string }) {
  const { data } = useGet("/api/v1/hold", {}, { staleTime: 30_000 });
  const hold = data && holdOf(data, agent);
  if (!hold) return null;
  return hold.since ? <Lasting at={hold.since} /> : <>since <Unknown reason={hold.by_unknown ?? "the plane does not say"} /></>;
}

type Holds = HoldSaid & { held: boolean; held_agents: readonly (HoldSaid & { agent: string })[] };

/** Everything's hold goes before an agent's own: it is the one that has to be lifted first. */
export const holdOf = (holds: Holds, agent: string): HoldSaid | undefined => (holds.held ? holds : holds.held_agents.find((each) => each.agent === agent));
