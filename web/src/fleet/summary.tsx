// The head of the fleet in numbers: nodes by state, the share of places that can be reached, what
// raises an alarm. Every number is the plane's; what it does not know is a question with its age.
import { Link } from "@/router";
import { count } from "@/look/format";
import { ActButton } from "@/parts/act";
import { StateMark } from "@/parts/state-mark";
import { Age, Lasting, Room, Unknown } from "@/parts/values";
import { endDoubt } from "./calls";
import { statesOf } from "./map";
import type { Fleet } from "./shapes";

export function Summary({ fleet, chosen }: { fleet: Fleet; chosen: string }) {
  const states = statesOf(fleet.nodes);
  return (
    <div className="flex flex-wrap items-center gap-x-6 gap-y-1">
      <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
        {states.length === 0 && <span className="text-text-2">no node</span>}
        {states.map(([state, n]) => (
          <Link key={state} to={chosen === state ? "/fleet" : `/fleet?state=${encodeURIComponent(state)}`}
            aria-current={chosen === state ? "true" : undefined}
            className="flex min-h-6 items-center gap-1 rounded-sm px-1 aria-[current]:bg-selected">
            <Room ch={2}>{count(n)}</Room> <StateMark state={state} />
          </Link>
        ))}
      </span>
      {states.length > 0 && <Share fleet={fleet} />}
    </div>
  );
}

/** Cut as the plane's own sentences are, so that both say the same. */
const sharePercent = (part: number, of: number): string => (part > 0 && part * 100 < of ? "<1" : String(Math.floor((part / of) * 100)));

function Share({ fleet }: { fleet: Fleet }) {
  const { reachable, unknown, used } = fleet.capacity;
  if (reachable === null) {
    return (
      <span className="text-text-2">
        reachable slots <Unknown reason={fleet.capacity.reachable_reason ?? undefined} last={fleet.capacity.reachable_last && count(fleet.capacity.reachable_last.value)} />
        {fleet.capacity.reachable_reason && <span className="text-text-3"> {fleet.capacity.reachable_reason}</span>}
      </span>
    );
  }
  const all = unknown === null ? null : reachable + unknown;
  return (
    <span className="text-text-2">
      {reachable === 0 && unknown !== 0 ? <b className="text-text">no slot can be reached</b>
        : all === null ? <><b className="text-text">{count(reachable)}</b> slots reachable</>
        : unknown === 0 ? <>all <b className="text-text">{count(reachable)}</b> slots reachable</>
        : <><b className="text-text">{count(reachable)} of {count(all)}, {sharePercent(reachable, all)} %</b> of the slots reachable</>}
      {reachable === 0 ? null : used === null ? <>, used <Unknown reason={fleet.capacity.used_reason ?? undefined} last={fleet.capacity.used_last && count(fleet.capacity.used_last.value)} /></> : <>, {count(used)} used</>}
      {unknown !== null && unknown > 0 && (
        <span className="text-wait">, {count(unknown)} {unknown === 1 ? "slot" : "slots"} not known <Lasting at={fleet.capacity.unknown_since} /></span>
      )}
    </span>
  );
}

/** Mass silence: verdicts are shown, nothing acts on them. */
export function Doubt({ fleet, refresh }: { fleet: Fleet; refresh(): void }) {
  if (!fleet.doubt) return null;
  return (
    <div role="alert" className="flex flex-wrap items-center gap-x-4 gap-y-2 border-l-2 border-wait bg-tint-wait p-3">
      <span className="min-w-0 flex-1 basis-72">
        <b>The plane doubts itself.</b> {fleet.doubt.evidence}. Verdicts are shown, nothing acts on them, since <Age at={fleet.doubt.since} />.
      </span>
      <ActButton act={{
        verb: "End the doubt", kind: "ask", scope: "operate", command: "curl -X POST …/api/v1/fleet/doubt/end",
        consequence: () => Promise.resolve("What is silent is acted on again: nodes may be lost, and work placed elsewhere."),
        run: async (key) => {
          const { ended } = await endDoubt(key);
          refresh();
          return ended ? "ended" : "there was none any more";
        },
      }} />
    </div>
  );
}
