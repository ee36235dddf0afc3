// Where nodes and the plane disagree, by name, and placements that wait, with why each node was
// passed over.
import { Link, path } from "@/router";
import { count } from "@/look/format";
import { lookOf } from "@/look/words";
import { Glyph, StateMark } from "@/parts/state-mark";
import { Age, Id } from "@/parts/values";
import type { Drift, PassedOver, Placements } from "./shapes";

const SHOWN = 12;

function Names({ names }: { names: string[] }) {
  return (
    <>
      {names.slice(0, SHOWN).map((name, index) => <span key={name}>{index > 0 && ", "}<code>{name}</code></span>)}
      {names.length > SHOWN && <span title={names.slice(SHOWN).join(", ")}> and {count(names.length - SHOWN)} more</span>}
    </>
  );
}

export function DriftLines({ drift }: { drift: Drift[] }) {
  if (drift.length === 0) return null;
  return (
    <section aria-labelledby="drift">
      <h2 id="drift" className="mb-1 flex items-center gap-2"><Glyph shape="warning" colour="var(--wait)" /> Drift · {count(drift.length)}</h2>
      <ul className="border-t border-border">
        {drift.map((one) => (
          <li key={one.node} className="flex flex-wrap gap-x-3 gap-y-1 border-b border-border py-2">
            <Link to={path("fleet", "nodes", one.name)} className="font-semibold">{one.name}</Link>
            <span>plane {count(one.believed)}, node {count(one.claimed)}</span>
            {one.missing.length > 0 && <span>missing <Names names={one.missing} /></span>}
            {one.surplus.length > 0 && <span>not known here <Names names={one.surplus} /></span>}
            <span className="text-text-2">{one.next}</span>
            <span className="text-text-3"><Age at={one.since} /></span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Why nodes were passed over: the sentence for each, and how many there are by reason. */
export function PassedOverList({ over, counts }: { over: PassedOver[]; counts?: Record<string, number> }) {
  const total = Object.values(counts ?? {}).reduce((sum, n) => sum + n, 0);
  return (
    <ul className="flex flex-col">
      {over.map((one) => (
        <li key={one.node} className="grid gap-x-3 py-[2px] sm:grid-cols-[minmax(80px,160px)_110px_1fr]">
          <Link to={path("fleet", "nodes", one.name)} className="truncate">{one.name}</Link>
          {lookOf(one.why).known ? <StateMark state={one.why} /> : <span className="text-text-2">{one.why}</span>}
          <span className="text-text-2">{one.evidence}</span>
        </li>
      ))}
      {total > over.length && (
        <li className="text-text-3">
          and {count(total - over.length)} more: {Object.entries(counts ?? {}).map(([why, n]) => `${why} ${count(n)}`).join(", ")}
        </li>
      )}
    </ul>
  );
}

export function Waiting({ placements }: { placements: Placements }) {
  if (placements.placements.length === 0) return null;
  return (
    <section aria-labelledby="placements">
      <h2 id="placements" className="mb-1 flex items-center gap-2"><Glyph shape="ring" /> Placements that wait · {count(placements.total)}</h2>
      <ul className="border-t border-border">
        {placements.placements.map((one) => (
          <li key={one.worker?.id ?? one.since} className="border-b border-border py-2">
            <div className="flex flex-wrap gap-x-3 gap-y-1">
              {one.worker && <><Link to={path("fleet", "workers", one.worker.id)} className="font-semibold">{one.worker.name}</Link><Id id={one.worker.id} /></>}
              <span>{one.text}</span>
              <span className="text-text-2">waits <Age at={one.since} plain />{one.expires_at && <>, gives up <Age at={one.expires_at} due /></>}</span>
            </div>
            <details className="mt-1">
              <summary className="min-h-6 cursor-pointer text-text-2">why each node was passed over</summary>
              <div className="pt-1 pl-4"><PassedOverList over={one.passed_over} counts={one.passed_over_counts} /></div>
            </details>
          </li>
        ))}
      </ul>
      {placements.total > placements.placements.length && <p className="text-text-3">{count(placements.total - placements.placements.length)} more wait</p>}
    </section>
  );
}
