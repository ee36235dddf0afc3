// Small values, written the same everywhere: ages that tick, durations, ids that copy, numbers,
// and what is unknown with its reason. Blank never.
import { type ReactNode, useEffect, useRef, useState } from "react";
import { planeNow, useAgeOf } from "@/live/clock";
import { useDisplay } from "@/look/display";
import { ago, count, duration, rfc3339, shortId, span, time } from "@/look/format";

type At = string | number | null | undefined;
/** Milliseconds of a time on the wire. */
export const msOf = (at: At): number | null => {
  if (at === null || at === undefined) return null;
  const ms = typeof at === "number" ? at : Date.parse(at);
  return Number.isNaN(ms) ? null : ms;
};

/** What is not known: a dash with the reason, or what was last known. */
export function Unknown({ reason, last }: { reason?: string; last?: ReactNode }) {
  return (
    <span className="text-text-3" title={reason}>
      {last === undefined ? "—" : <>? last known {last}</>}
      {reason && <span className="visually-hidden"> unknown: {reason}</span>}
    </span>
  );
}

/** How long ago, ticking on the plane's time: `12 s ago`, `now`, `due 2 s ago`. */
export function Age({ at, plain, due, reason }: { at: At; plain?: boolean; due?: boolean; reason?: string }) {
  const { clock } = useDisplay();
  const ms = msOf(at);
  const now = useAgeOf(ms);
  if (ms === null) return <Unknown reason={reason} />;
  const age = now - ms;
  const text = due && age >= 1000 ? `due ${ago(age)}` : plain ? (Math.abs(age) < 1000 ? "now" : span(age)) : ago(age);
  return (
    <time dateTime={rfc3339(ms)} title={`${time(ms, clock, planeNow())} · ${rfc3339(ms)}`} className="whitespace-nowrap">
      {text}
    </time>
  );
}

/** How long it has been so, in a sentence: `for 12 s`, `since just now`. */
export function Lasting({ at }: { at: At }) {
  const ms = msOf(at);
  const now = useAgeOf(ms);
  if (ms === null) return null;
  return <time dateTime={rfc3339(ms)} title={rfc3339(ms)} className="whitespace-nowrap">{now - ms < 1000 ? "since just now" : `for ${span(now - ms)}`}</time>;
}

/** How long something took, or has been taking since `from` when it has no end. */
export function Took({ ms, from, to }: { ms?: number | null; from?: At; to?: At }) {
  const start = msOf(from);
  if (ms !== undefined && ms !== null) return <span title={`${count(Math.round(ms))} ms`}>{duration(ms)}</span>;
  if (start === null) return <Unknown />;
  const end = msOf(to);
  if (end !== null) return <span title={`${count(end - start)} ms`}>{duration(end - start)}</span>;
  return <Running from={start} />;
}

function Running({ from }: { from: number }) {
  const now = useAgeOf(from);
  return <span>{span(now - from)}</span>;
}

/** A time of day in the reader's clock. */
export function Time({ at }: { at: At }) {
  const { clock } = useDisplay();
  const ms = msOf(at);
  if (ms === null) return <Unknown />;
  return <time dateTime={rfc3339(ms)} title={rfc3339(ms)}>{time(ms, clock, planeNow())}</time>;
}

/** A number, or why there is none. `atLeast` marks a lower bound. */
export function Num({ value, reason, last, atLeast }: { value: number | null | undefined; reason?: string; last?: number | null; atLeast?: boolean }) {
  if (value === null || value === undefined) {
    return <Unknown reason={reason} last={last === null || last === undefined ? undefined : count(last)} />;
  }
  return <span>{atLeast && "≥ "}{count(value)}</span>;
}

/** Room for what grows: `ch` characters, flush right in them, so that what follows does not move. */
export function Room({ grows = true, ch = 3, start, children }: { grows?: boolean; ch?: number; /** Begins at the left instead. */ start?: boolean; children: ReactNode }) {
  if (!grows) return <>{children}</>;
  return <span className="room" style={{ minWidth: `${ch}ch` }}>{start ? children : <span className="flush">{children}</span>}</span>;
}

/** Copies a text and says so in place. */
export function useCopy(): [boolean, (text: string) => void] {
  const [copied, setCopied] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  return [
    copied,
    (text) => {
      void navigator.clipboard?.writeText(text).then(() => {
        setCopied(true);
        clearTimeout(timer.current);
        timer.current = setTimeout(() => setCopied(false), 1500);
      });
    },
  ];
}

/** An id, short on screen, whole when copied or read out. */
export function Id({ id, plain, tabIndex }: { id: string | null | undefined; plain?: boolean; /** −1 in lists, where `c` copies. */ tabIndex?: number }) {
  const [copied, copy] = useCopy();
  if (id === null || id === undefined) return <Unknown reason="the plane does not say" />;
  const shown = (
    <>
      <span aria-hidden className="select-none">{copied ? "copied" : shortId(id)}</span>
      <span className="visually-hidden select-all">{id}</span>
    </>
  );
  if (plain) return <span className="font-mono text-xs whitespace-nowrap" title={id}>{shown}</span>;
  return (
    <button type="button" tabIndex={tabIndex} className="min-h-[24px] font-mono text-xs whitespace-nowrap hover:underline" title={`${id} · copy`}
      onClick={(event) => {
        event.preventDefault();
        event.stopPropagation();
        copy(id);
      }}
    >
      {shown}
    </button>
  );
}
