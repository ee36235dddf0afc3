// The sections of the overview, each drawn from its part of one answer. Every count is a link to the
// list that shows exactly it.
import { type ReactNode, useState } from "react";
import type { Need, Overview } from "@/api/shapes";
import { useAgeOf } from "@/live/clock";
import { count, duration, rfc3339, span } from "@/look/format";
import { colourOf, lookOf } from "@/look/words";
import { Bars, Sparkline } from "@/parts/charts";
import { BY_UNKNOWN, HeldWords } from "@/parts/held";
import { Plain } from "@/parts/plain";
import { Said } from "@/parts/said";
import { Glyph, StateMark } from "@/parts/state-mark";
import { Age, Lasting, Num, Room, Unknown, msOf } from "@/parts/values";
import { Link, below } from "@/router";
import { seriousFirst } from "@/shell/needs";
import { listLink } from "@/runs/list/address";
import { Decide } from "./decide";

export function Section({ title, total, children, aside }: { title: string; total?: number | null; children: ReactNode; aside?: ReactNode }) {
  return (
    <section aria-label={title}>
      <h2 className="mb-1 flex items-baseline gap-2 text-sm">
        {title}{total !== undefined && total !== null && <span className="font-normal text-text-2">· <Room grows={!!aside} ch={5} start>{count(total)}</Room></span>}
        {aside && <span className="font-normal text-text-3">{aside}</span>}
      </h2>
      {children}
    </section>
  );
}

const SHOWN = 8;

export function Needs({ overview }: { overview: Overview }) {
  const [all, setAll] = useState(false);
  const { needs_total: total } = overview;
  const needs = seriousFirst(overview.needs);
  const shown = all ? needs : needs.slice(0, SHOWN);
  return (
    <Section title="Needs you" total={total}>
      <ul className="needs">
        {shown.map((need) => <NeedLine key={`${need.kind} ${need.id}`} need={need} />)}
      </ul>
      {total > shown.length && (
        needs.length > shown.length
          ? <button type="button" className="px-2 py-1 text-accent hover:underline" onClick={() => setAll(true)}>{count(total - shown.length)} more</button>
          : <p className="px-2 py-1 text-text-2">{count(total - shown.length)} more are in Agents, Fleet and Health, worst first.</p>
      )}
    </Section>
  );
}

function NeedLine({ need }: { need: Need }) {
  const left = msOf(need.until);
  return (
    <li className="need">
      <StateMark state={need.state} compact evidence={need.text} />
      <Link to={below(need.path)} className="need-text"><Said text={need.text} /></Link>
      <span className="need-when">
        {need.since ? <Age at={need.since} /> : need.kind === "hold" && <>held <HeldWords hold={{ by: need.by, since: null, by_unknown: BY_UNKNOWN }} /></>}
        {left !== null && <>{need.since && ", "}<Left until={left} /></>}
      </span>
      {need.kind === "approval" && <Decide id={need.id} />}
    </li>
  );
}

/** `58 m left`, or that the time is over. */
export function Left({ until }: { until: number }) {
  const left = until - useAgeOf(until);
  return <span title={rfc3339(until)}>{left > 0 ? `${span(left)} left` : `over since ${span(left)}`}</span>;
}

/** What was held up while this page was looked at keeps its place: under load it comes and goes. */
export function HeldUp({ held }: { held: Overview["held"] }) {
  const [seen, setSeen] = useState<readonly string[]>([]);
  const fresh = held.causes.map((each) => each.cause).filter((cause) => !seen.includes(cause));
  if (fresh.length > 0) setSeen([...seen, ...fresh]);
  if (held.total === 0 && seen.length === 0) return null;
  const causes = [...held.causes].sort((a, b) => seen.indexOf(a.cause) - seen.indexOf(b.cause));
  return (
    <Section title="Held up" total={held.total}>
      <ul className="chips">
        {held.total === 0 && <li className="flex min-h-[28px] items-center text-text-2">Nothing is held up now.</li>}
        {causes.map((cause) => {
          const { shape, colour } = lookOf(cause.cause === "hold" ? "hold" : cause.cause === "agent_restart" ? "absorbed" : cause.state);
          const inside = (
            <>
              <Glyph shape={shape} colour={colourOf(colour)} />
              <span><Plain text={cause.text} /></span>
              <b><Room ch={2}>{count(cause.count)}</Room></b>
              {cause.oldest_at && <span className="text-text-2"><Room ch={5} start><Age at={cause.oldest_at} plain /></Room></span>}
            </>
          );
          return (
            <li key={cause.cause}>
              {cause.query === null ? <span className="chip" title="too many agents for one list; see Queues">{inside}</span> : <Link className="chip" to={listLink(cause.query)}>{inside}</Link>}
            </li>
          );
        })}
      </ul>
    </Section>
  );
}

const rate = (value: number | null) => (value === null ? null : value >= 10 ? count(Math.round(value)) : String(Math.round(value * 10) / 10));

/** What the end of the line beside it says: the last minute that is over, not the one that has begun. */
function LastMinute({ values, bucketMs }: { values: readonly (number | null)[]; bucketMs: number }) {
  const last = values.at(-2) ?? null;
  // The same room before the first minute is over: what follows stays where it is then.
  return <Room ch={10} start>{last === null ? <Unknown reason="the plane was not there to count the last minute" /> : <b title="in the last full minute">{`${rate((last * 60_000) / bucketMs)}/min`}</b>}</Room>;
}

export function Flow({ flow }: { flow: Overview["flow"] }) {
  const hours = Math.round((flow.bucket_ms * flow.started.length) / 3_600_000);
  const line = (name: string, values: readonly (number | null)[], perMinute: number | null) => (
    <span className="flex flex-wrap items-center gap-x-2">
      <span className="text-text-2">{name}</span>
      <span className="hidden sm:inline-flex"><Sparkline values={values} unit={name} /></span>
      <LastMinute values={values} bucketMs={flow.bucket_ms} />
      <span className="text-text-2"><Room ch={20} start>{perMinute === null ? <Unknown reason="the plane was not there to count" /> : `${rate(perMinute)}/min over ${span(flow.bucket_ms * values.filter((value) => value !== null).length)}`}</Room></span>
    </span>
  );
  return (
    <Section title={`Flow ${hours} h`}>
      <div className="flex flex-wrap items-center gap-x-6 gap-y-2 px-2">
        {line("started", flow.started, flow.started_per_min)}
        {line("ended", flow.ended, flow.ended_per_min)}
        <Link to="/runs?v=executions&state=queued,running,waiting,paused&t=all" className="flex items-center gap-2"><span className="text-text-2">open</span> <Room ch={5} start>{count(flow.open)}</Room></Link>
        <span className="flex items-center gap-2"><span className="text-text-2">oldest wait</span> <Room ch={13} start>{flow.oldest_wait_ms === null ? <span className="text-text-2">nothing waits</span> : duration(flow.oldest_wait_ms)}</Room></span>
      </div>
    </Section>
  );
}

export function Failed({ failed }: { failed: Overview["failed"] }) {
  const before = failed.before === null ? "before: unknown" : `before: ${count(failed.before)}`;
  return (
    <Section title="Failed 1 h" total={failed.total} aside={before}>
      {failed.total === 0 ? <p className="px-2 text-text-2">Nothing failed.</p> : (
        <div className="max-w-[560px] px-2">
          <Bars label="Failures by category" items={failed.categories.map((each) => ({
            id: each.category, name: <code>{each.category}</code>, value: each.count, to: listLink(each.query), colour: "var(--fail)",
            text: <><Room ch={5}>{count(each.count)}</Room> <span className="text-text-3">before {each.before === null ? "—" : count(each.before)}</span></>,
          }))} />
        </div>
      )}
    </Section>
  );
}

/** Order in which states are told: worst first. */
const WORST = ["down", "lost", "unreachable", "unreachable_callback", "unknown", "suspect", "flapping", "degraded", "restarting", "connecting", "draining", "online", "active"];
const worst = (a: string, b: string) => (WORST.indexOf(a) + 1 || 99) - (WORST.indexOf(b) + 1 || 99);

function States({ name, to, counts, none }: { name: string; to: string; counts: { total: number; states: { [state: string]: number } }; none: string }) {
  return (
    <span className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <Link to={to} className="font-semibold">{name} <Room ch={3} start>{count(counts.total)}</Room></Link>
      {counts.total === 0 && <span className="text-text-2">{none}</span>}
      {Object.entries(counts.states).filter(([, many]) => many > 0).sort(([a], [b]) => worst(a, b)).map(([state, many]) => (
        <Link key={state} to={`${to}?state=${encodeURIComponent(state)}`} className="flex items-center gap-1"><StateMark state={state} /> <Room ch={3} start>{count(many)}</Room></Link>
      ))}
    </span>
  );
}

export function There({ overview: { agents, nodes, slots, workers } }: { overview: Overview }) {
  const running = workers.running ?? 0;
  return (
    <Section title="Agents and nodes">
      <div className="flex flex-wrap items-center gap-x-8 gap-y-2 px-2">
        <States name="Agents" to="/agents" counts={agents} none="none has registered" />
        <States name="Nodes" to="/fleet" counts={nodes} none="none is enrolled" />
        {nodes.total > 0 && (
          <span className="flex flex-wrap items-center gap-x-3">
            {slots.reachable === 0
              ? <span className="text-text-2">no slot can be reached</span>
              : <span><span className="text-text-2">slots free</span> <Num value={slots.free} reason={slots.free_unknown} /> <span className="text-text-2">of</span> <Num value={slots.reachable} reason={slots.reachable_unknown} /></span>}
            {(slots.unknown === null || slots.unknown > 0) && (
              <span className="hatched px-1"><span className="bg-canvas px-1">{slots.unknown === null ? <>unknown slots <Num value={null} reason={slots.unknown_unknown} /></> : `${count(slots.unknown)} ${slots.unknown === 1 ? "slot" : "slots"} not known`} <Lasting at={slots.unknown_since} /></span></span>
            )}
            <Link to="/fleet"><span className="text-text-2">workers</span> {count(running)}{(workers.unknown ?? 0) > 0 && <span className="text-text-2"> and {count(workers.unknown)} unknown</span>}</Link>
          </span>
        )}
      </div>
    </Section>
  );
}
