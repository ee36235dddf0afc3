// Which time a list or a sum covers. A relative range moves with the plane's clock; an absolute one
// freezes the page and says so.
import { useEffect, useRef, useState } from "react";
import { freeze, planeNow, useSecond } from "@/live/clock";
import { setPaused } from "@/live/stream";
import { useDisplay } from "@/look/display";
import { time } from "@/look/format";
import { DEFAULT_RANGE, RANGES, type Range, fieldTime, rangeOf, readable, timeField } from "@/look/range";
import { useQuery } from "@/router";
import { Popover } from "./layer";
import { Misread } from "./misread";

/** The range of the page: in the address as `t`. Renders again when the range has moved on. */
export function useRange(fallback: string = DEFAULT_RANGE): Range {
  const [text] = useQuery("t", fallback);
  useSecond();
  const range = rangeOf(text || fallback, planeNow());
  useEffect(() => {
    if (!range.absolute || !range.until) return;
    freeze(Date.parse(range.until));
    setPaused(true);
    return () => {
      freeze(null);
      setPaused(false);
    };
  }, [range.absolute, range.until]);
  return range;
}

const NAMES: Record<string, string> = { all: "all time" };

export function TimeRange({ fallback = DEFAULT_RANGE }: { fallback?: string }) {
  const [text, set] = useQuery("t", fallback);
  const { clock } = useDisplay();
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const range = rangeOf(text || fallback, planeNow());
  const shown = range.absolute && range.since && range.until
    ? `${time(Date.parse(range.since), clock, planeNow())} – ${time(Date.parse(range.until), clock, planeNow())}`
    : range.text.endsWith("..") && range.since ? `since ${time(Date.parse(range.since), clock, planeNow())}` : (NAMES[range.text] ?? range.text);
  return (
    <span className="inline-flex max-w-full flex-wrap items-center gap-x-2">
      <button ref={button} type="button" className="button max-w-full" aria-haspopup="dialog" aria-expanded={open}
        title="what ended in this time; what is open is always shown" onClick={() => setOpen(!open)}>
        <span className="truncate" title={shown}>{shown}</span> <span aria-hidden className="ml-1 text-text-3">▾</span>
      </button>
      {range.absolute && (
        <span className="text-xs text-wait">frozen at its end ·{" "}
          <button type="button" className="target text-accent underline" onClick={() => set(null)}>live again</button>
        </span>
      )}
      {text !== "" && !readable(text) && <Misread of="t" value={text} shown={NAMES[range.text] ?? range.text} />}
      {open && (
        <Popover anchor={button} close={() => setOpen(false)} label="Time range">
          <Choose range={range} choose={(next) => {
            set(next);
            setOpen(false);
          }} />
        </Popover>
      )}
    </span>
  );
}

function Choose({ range, choose }: { range: Range; choose(text: string): void }) {
  const { clock } = useDisplay();
  const [from, setFrom] = useState(timeField(range.since ? Date.parse(range.since) : planeNow() - 3_600_000, clock));
  const [to, setTo] = useState(timeField(range.until ? Date.parse(range.until) : planeNow(), clock));
  const [start, end] = [fieldTime(from, clock), fieldTime(to, clock)];
  const wrong = start === undefined || end === undefined ? "both times are needed" : start >= end ? "the first time must be before the second" : undefined;
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap gap-1" role="group" aria-label="Ending now">
        {RANGES.map((each, index) => (
          <button key={each} type="button" className="button" data-first={index === 0 || undefined} aria-pressed={range.text === each} onClick={() => choose(each)}>
            {NAMES[each] ?? each}
          </button>
        ))}
      </div>
      <form className="flex flex-col gap-2" onSubmit={(event) => {
        event.preventDefault();
        if (start !== undefined && end !== undefined && start < end) choose(`${new Date(start).toISOString()}..${new Date(end).toISOString()}`);
      }}>
        <label className="flex items-center gap-2"><span className="w-9 text-text-2">from</span>
          <input className="field" type="datetime-local" step="1" value={from} onChange={(event) => setFrom(event.target.value)} /></label>
        <label className="flex items-center gap-2"><span className="w-9 text-text-2">to</span>
          <input className="field" type="datetime-local" step="1" value={to} onChange={(event) => setTo(event.target.value)} />
          <span className="text-xs text-text-3">{clock === "utc" ? "UTC" : "local"}</span></label>
        <div className="flex items-center gap-3">
          <button type="submit" className="button" disabled={wrong !== undefined}>Show this time</button>
          <span className="text-xs text-text-3">{wrong ?? "the page stands still"}</span>
        </div>
      </form>
    </div>
  );
}
