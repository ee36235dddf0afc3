// What a run is, in two lines: its state and why, how many steps of each state, where time went,
// where it comes from. Counts filter the rows below to exactly what they count.
import { useEffect, useRef } from "react";
import { isOpen } from "@/execution/shapes";
import { count, duration } from "@/look/format";
import { plain } from "@/look/plain";
import { missing, money } from "@/usage/sums";
import { byState, colourOf, lookOf } from "@/look/words";
import { SplitBar, patternOf } from "@/parts/charts";
import { SaidThen } from "@/parts/said";
import { Glyph, StateMark } from "@/parts/state-mark";
import { Age, Id, Room, Took } from "@/parts/values";
import { Link, path, setQuery } from "@/router";
import { PageHead } from "@/shell/crumbs";
import { receiptWords } from "./cancelled";
import type { RunShown } from "./columns";
import { partsOf } from "./list/line";


export function Crumbs({ run, shown, acts, phone }: { run: string; shown: RunShown | undefined; acts: React.ReactNode; phone?: boolean }) {
  const lineage = shown?.lineage;
  return (
    <PageHead
      acts={acts}
      beside={phone}
      crumbs={
        <>
          <Link to="/runs" className="text-text-2">Runs</Link>
          <span className="text-text-3">/</span>
          <h1 className="text-lg">{shown ? plain(shown.name ?? shown.root?.target ?? "run") : "run"}</h1>
          <Id id={run} />
          {lineage?.restart_of_run && (
            <span className="text-text-2">
              restart of <Link to={path("runs", lineage.restart_of_run)} className="text-accent"><Id id={lineage.restart_of_run} plain /></Link>{" "}
              <Link to={`/compare?a=${encodeURIComponent(lineage.restart_of_run)}&b=${encodeURIComponent(run)}`} className="text-accent">compare</Link>
            </span>
          )}
          {lineage?.restarted_as && (
            <span className="text-text-2">
              restarted as <Link to={path("runs", lineage.restarted_as)} className="text-accent"><Id id={lineage.restarted_as} plain /></Link>{" "}
              <Link to={`/compare?a=${encodeURIComponent(run)}&b=${encodeURIComponent(lineage.restarted_as)}`} className="text-accent">compare</Link>
            </span>
          )}
        </>
      }
    />
  );
}

/** A bar of the states of its steps: the share of each, for a quick look. */
function Share({ counts }: { counts: ReadonlyMap<string, number> }) {
  const parts = partsOf(Object.fromEntries(counts));
  return (
    <SplitBar width={72} label={parts.map((part) => `${count(part.count)} ${part.state}`).join(", ")} parts={parts.map(({ state, count: many }) => {
      const { colour } = lookOf(state);
      return { state, count: many, colour: colourOf(colour), pattern: patternOf(state) };
    })} />
  );
}

/** `state` and `counts` come from the rows below where those are complete, so that both say the same. */
export function Summary({ shown, state, counts, phone }: { shown: RunShown; state: string; counts: ReadonlyMap<string, number>; phone?: boolean }) {
  const open = isOpen(state);
  const sums = shown.took;
  const times: [string, number | undefined][] = [["queued", sums?.queued_ms], ["running", sums?.running_ms], ["waiting", sums?.waiting_ms], ["paused", sums?.paused_ms]];
  const detached = shown.open_detached ?? 0;
  const spent = times.filter(([, ms]) => ms !== undefined && ms > 0);
  return (
    <div className="flex flex-wrap items-center gap-x-5 gap-y-1">
      <span className={phone ? "w-full min-w-0" : "inline-flex min-w-0 items-center gap-2"}>
        <StateMark state={state} evidence={shown.why} />{phone && " "}
        {detached > 0 && <span>{count(detached)} detached {detached === 1 ? "member" : "members"} open{shown.why && (phone ? " · " : " ·")}</span>}
        {shown.why && <span className="min-w-0 break-words"><SaidThen text={shown.why} at={Date.parse(shown.as_of)} links /></span>}
        {shown.paused_by && open && <>{phone && " "}<span className="text-text-2">paused by {plain(shown.paused_by)}{shown.paused_at && <>, <Age at={shown.paused_at} /></>}</span></>}
        {shown.receipts && <>{phone && " "}<Told receipts={shown.receipts} /></>}
      </span>
      {phone && <Counts counts={counts} phone open={open} />}
      <span className="room text-text-2" style={open ? { minWidth: phone ? "9ch" : "27ch" } : undefined} title={open ? "since it was accepted" : "from its acceptance to the end of its last member"}>
        {open ? <Room ch={7}><Took from={shown.started_at ?? shown.root?.created_at} /></Room> : <Took ms={shown.took_ms} from={shown.started_at ?? shown.root?.created_at} to={shown.ended_at ?? shown.root?.completed_at} />}
        {open && " so far"}
        <span className="text-text-3 max-sm:hidden">, started <Age at={shown.started_at ?? shown.root?.created_at} /></span>
      </span>
      {!phone && <Counts counts={counts} open={open} />}
      {shown.usage && <Usage usage={shown.usage} />}
      {spent.length > 0 && (
        <span className="text-text-2 max-sm:hidden" title="sums over all steps, so they may be more than the run took">
          <span className="text-text-3">all steps together:&nbsp;</span>{spent.map(([word, ms], at) => <span key={word} className="room" style={open ? { minWidth: `${word.length + 10}ch` } : undefined}>{at > 0 && !open && "\u00a0· "}{word} {duration(ms)}</span>)}
          {sums?.partial && " (the last steps are left out)"}
        </span>
      )}
    </div>
  );
}

/** What agents did about calls that were ended while they had them: a cancel's, or a clock's. */
function Told({ receipts }: { receipts: NonNullable<RunShown["receipts"]> }) {
  const words = receiptWords(receipts);
  if (words === "") return null;
  const runs = receipts.still_running + receipts.not_told + receipts.unanswered > 0;
  const title = [
    "calls that were ended while their agents had them, and what the agents did",
    receipts.not_told > 0 && `${count(receipts.not_told)} could not be told`,
    receipts.unanswered > 0 && `${count(receipts.unanswered)} not answered yet`,
    receipts.partial && "the run has so many members that some are left out",
  ].filter(Boolean).join("; ");
  return <span className={runs ? "text-wait" : "text-text-2"} title={title} data-receipts>{words}</span>;
}

/** What its agents reported; nothing when none did. */
function Usage({ usage }: { usage: NonNullable<RunShown["usage"]> }) {
  const said = [
    usage.total_tokens != null && `${count(usage.total_tokens)} tokens`,
    ...(usage.cost ?? []).map((cost) => `${money(cost.amount)} ${cost.currency}`),
  ].filter(Boolean);
  if (said.length === 0) return null;
  return <span className="text-text-2" title={missing(usage) ?? "reported by all of its executions"} data-usage>{said.join(" · ")}{missing(usage) && " ≥"}</span>;
}

function Counts({ counts, phone, open }: { counts: ReadonlyMap<string, number>; phone?: boolean; open: boolean }) {
  const total = [...counts.values()].reduce((sum, many) => sum + many, 0);
  // While it goes on, a state that came keeps its place when it has none for a moment, a usual one has
  // its place from the start, and an unusual one comes last: what one is about to click does not move.
  const seen = useRef<string[]>([]);
  const known = new Set(open && !phone ? [...seen.current, ...counts.keys(), "queued", "running", "succeeded", "failed"] : counts.keys());
  const fresh = [...known].filter((state) => !open || !seen.current.includes(state)).sort(byState);
  const states = open ? [...seen.current.filter((state) => known.has(state)), ...fresh] : fresh;
  useEffect(() => {
    seen.current = states;
  });
  return (
    <span className={`inline-flex flex-wrap items-center ${phone ? "gap-2" : "gap-3"}`}>
      {phone && <Share counts={counts} />}
      <button type="button" className="min-h-6 hover:underline" onClick={() => setQuery({ only: null, slower: null })}><Room grows={open} ch={phone ? count(total).length : 5}>{count(total)}</Room> {total === 1 ? "step" : "steps"}</button>
      {states.map((state) => {
        const many = counts.get(state) ?? 0;
        const { shape, colour } = lookOf(state);
        if (many === 0) return <span key={state} aria-hidden className="invisible inline-flex items-center gap-1"><Room ch={4}>{" "}</Room> <Glyph shape={shape} /></span>;
        return (
          <button key={state} type="button" className="inline-flex min-h-6 items-center gap-1 hover:underline" style={{ color: colourOf(colour) }} title={`show the ${count(many)} that are ${state}`} data-count={state} onClick={() => setQuery({ only: state, slower: null })}>
            <Room grows={open} ch={phone ? Math.max(2, count(many).length) : 4}>{count(many)}</Room> <Glyph shape={shape} label={state} />
          </button>
        );
      })}
    </span>
  );
}
