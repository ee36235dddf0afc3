// What a queue's line says, cell by cell. An estimate without a rate is a dash with the reason.
import { count, span } from "@/look/format";
import { lookOf, colourOf } from "@/look/words";
import { HeldSince } from "@/parts/held";
import { Said } from "@/parts/said";
import { Glyph } from "@/parts/state-mark";
import { Age, Unknown, msOf } from "@/parts/values";
import { Link } from "@/router";
import { listLink } from "@/runs/list/address";
import { Left } from "@/overview/sections";
import type { QueueLine } from "./all";

type Cell = { line: QueueLine };

export function RunCap({ line }: Cell) {
  const full = line.cap !== null && line.running >= line.cap;
  return (
    <Link to={listLink(`status=running&agent=${encodeURIComponent(line.agent)}`)} tabIndex={-1} className={full ? "font-semibold" : ""}
      title={`${count(line.running)} running, ${line.cap === null ? "no cap" : `cap ${count(line.cap)}`}${line.over_cap > 0 ? `, ${count(line.over_cap)} of them over the cap` : ""}`}>
      {count(line.running)}/{line.cap === null ? <span className="text-text-3">∞<span className="visually-hidden"> no cap</span></span> : count(line.cap)}{line.over_cap > 0 && <span className="text-wait"> ⤒{count(line.over_cap)}</span>}
    </Link>
  );
}

export function Waiting({ line }: Cell) {
  const others = [line.absorbed > 0 && `${count(line.absorbed)} wait for its restart`, line.waiting_callers > 0 && `${count(line.waiting_callers)} callers wait for a turn`].filter(Boolean).join(", ");
  if (line.queued === 0 && others === "") return <span className="text-text-3">0</span>;
  return (
    <Link to={listLink(`status=queued&agent=${encodeURIComponent(line.agent)}`)} tabIndex={-1} title={others || undefined}>
      {count(line.queued)}{line.absorbed > 0 && <span className="text-wait"> ↻{count(line.absorbed)}</span>}{line.waiting_callers > 0 && <span className="text-text-2"> +{count(line.waiting_callers)}</span>}
    </Link>
  );
}

export const Oldest = ({ line }: Cell) => (line.oldest_queued_at ? <Age at={line.oldest_queued_at} plain /> : <Unknown reason="nothing is queued" />);

export function Rate({ line }: Cell) {
  if (line.starts_per_minute === null) return <Unknown reason="nothing started lately" />;
  return <span>{line.starts_per_minute >= 10 ? Math.round(line.starts_per_minute) : Math.round(line.starts_per_minute * 10) / 10}/min</span>;
}

/** When the last of them would start, or one of them. */
export function Estimate({ ms, reason = "no rate to go by" }: { ms: number | null | undefined; reason?: string }) {
  return ms === null || ms === undefined ? <Unknown reason={reason} /> : <span title="an estimate by the rate of the last minutes">≈ {span(ms)}</span>;
}

export const LastStarts = ({ line }: Cell) => (line.queued === 0 ? <Unknown reason="nothing is queued" /> : <Estimate ms={line.starts_in_ms} />);

const STATE_OF: Record<string, string> = { agent_full: "queued", agent_unavailable: "down", hold: "hold", tags_pending: "waiting", starting: "starting", agent_restart: "absorbed", approval: "waiting", waiting_child: "waiting", paused: "paused" };

export function HeldBy({ line }: Cell) {
  const held = line.held_by;
  if (!held) return <span className="text-text-3">nothing</span>;
  const { shape, colour } = lookOf(STATE_OF[held.cause] ?? held.cause);
  const until = msOf(held.until);
  return (
    <span className="inline-flex max-w-full min-w-0 items-center gap-2">
      <Glyph shape={shape} colour={colourOf(colour)} />
      <span className="min-w-0 truncate" title={held.text}><Said text={held.text} /></span>
      {held.cause === "hold" && <span className="whitespace-nowrap text-text-2"><HeldSince agent={line.agent} /></span>}
      {until !== null && <span className="whitespace-nowrap text-text-2"><Left until={until} /></span>}
    </span>
  );
}
