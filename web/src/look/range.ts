// A range of time as it stands in the address: `15m`, `24h`, `7d`, `FROM..` or
// `FROM..TO` in RFC 3339. It
// applies to what ended; what is open is always shown. Pure.

export type Range = {
  /** As in the address. */
  text: string;
  /** RFC 3339, for the plane; absent: from the beginning. */
  since?: string;
  until?: string;
  /** Both ends are fixed and past: the page stands still. */
  absolute: boolean;
};

export const RANGES = ["15m", "1h", "24h", "7d", "all"] as const;
export const DEFAULT_RANGE = "24h";
const UNIT_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A time in RFC 3339; what other parsers would guess at is none. */
const timeOf = (text: string) => (/^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN);

/** Milliseconds of `15m`, or undefined. */
export function spanOf(text: string): number | undefined {
  const found = /^(\d{1,4})([mhd])$/.exec(text);
  return found ? Number(found[1]) * (UNIT_MS[found[2] ?? ""] ?? 0) : undefined;
}

/**
 * Reads a range. `now` is cut to ten seconds, so that a list asks for the same thing again and its
 * cached answer is found. What cannot be read is the default.
 */
export function rangeOf(text: string, now: number): Range {
  if (text === "all") return { text, absolute: false };
  const [from, to, more] = text.split("..");
  if (from && to === "" && more === undefined && !Number.isNaN(timeOf(from))) {
    // Open at its end: it goes on.
    return { text, since: new Date(timeOf(from)).toISOString(), absolute: false };
  }
  if (from && to && more === undefined) {
    const [start, end] = [timeOf(from), timeOf(to)];
    if (!Number.isNaN(start) && !Number.isNaN(end) && start < end) {
      return { text, since: new Date(start).toISOString(), until: new Date(end).toISOString(), absolute: end <= now };
    }
  }
  const span = spanOf(text);
  if (span === undefined) return rangeOf(DEFAULT_RANGE, now);
  return { text, since: new Date(Math.floor((now - span) / 10_000) * 10_000).toISOString(), absolute: false };
}

/** Whether a text is a range at all; what is not is read as the default. */
export const readable = (text: string) => rangeOf(text, 0).text === text;

/** The value of a `datetime-local` field as a time: the field is in the reader's own clock. */
export function fieldTime(value: string, clock: "local" | "utc"): number | undefined {
  const time = Date.parse(clock === "utc" ? `${value}Z` : value);
  return Number.isNaN(time) ? undefined : time;
}

/** A time as the value of a `datetime-local` field. */
export function timeField(ms: number, clock: "local" | "utc"): string {
  const shift = clock === "utc" ? 0 : new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - shift).toISOString().slice(0, 19);
}
