// How numbers, durations, ages, times, sizes and ids are written, everywhere the same. Pure.

const NARROW = "\u202f";

/** `<1 ms`, `840 ms`, `1.24 s`, `12.4 s`, `3 m 07 s`, `2 h 21 m`, `3 d 4 h`. Cuts, never rounds up over a bound. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "—";
  if (ms < 0) return `−${duration(-ms)}`;
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return `${Math.floor(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${(Math.floor(seconds * 100) / 100).toFixed(2)} s`;
  if (seconds < 60) return `${(Math.floor(seconds * 10) / 10).toFixed(1)} s`;
  const whole = Math.floor(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${String(whole % 60).padStart(2, "0")} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} m`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

/** An age without decimals: `now` under a second, `12 s`, `4 m`, `2 h 21 m`, `3 d 4 h`. */
export function span(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "—";
  const seconds = Math.floor(Math.abs(ms) / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} m`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

/** Past `4 m ago`, future `in 9 s`, `now`. */
export function ago(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "—";
  if (Math.abs(ms) < 1000) return "now";
  return ms > 0 ? `${span(ms)} ago` : `in ${span(ms)}`;
}

/** `1,204`. Exact for integers given as bigint too. */
export function count(value: number | bigint | null | undefined): string {
  if (value === null || value === undefined) return "—";
  // By hand, as nearly all are whole: the first `toLocaleString` of a page costs it 11 ms.
  if (typeof value === "number" && !Number.isSafeInteger(value)) return value.toLocaleString("en-US");
  return String(value).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** At most six characters: `1.29 M`, `88.2 k`, `128 k`. Cut; only for narrow cells, with the exact number on hover. */
export function short(value: number | null | undefined): string {
  if (value === null || value === undefined) return "—";
  if (Math.abs(value) < 10_000) return count(value);
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    const parts = value / size;
    if (Math.abs(parts) < 1) continue;
    const places = Math.abs(parts) < 10 ? 2 : Math.abs(parts) < 100 ? 1 : 0;
    return `${(Math.trunc(parts * 10 ** places) / 10 ** places).toFixed(places)} ${unit}`;
  }
  return count(value);
}

/** `9 of 312, 3 %`; `<1 %` when it is not zero. */
export function percent(part: number | null | undefined, of: number | null | undefined): string {
  if (part === null || part === undefined || of === null || of === undefined) return `${count(part)} of ${count(of)}`;
  if (of === 0) return `${count(part)} of 0`;
  const exact = (part / of) * 100;
  const shown = part > 0 && exact < 1 ? "<1" : part < of && exact >= 99 ? "99" : String(Math.round(exact));
  return `${count(part)} of ${count(of)}, ${shown} %`;
}

/** `14 B`, `3.1 KiB`, `64 MiB`. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "—";
  if (value < 1024) return `${value} B`;
  let size = value;
  for (const unit of ["KiB", "MiB", "GiB", "TiB"]) {
    size /= 1024;
    if (size < 1024) return `${size < 10 ? (Math.floor(size * 10) / 10).toFixed(1) : Math.floor(size)} ${unit}`;
  }
  return `${Math.floor(size / 1024)} PiB`;
}

export type ClockSetting = "local" | "utc";

const two = (part: number) => String(part).padStart(2, "0");

/** `2026-11-30 14:02:11`, of this machine's zone or of UTC. By hand: `toLocaleString` with a zone is
 *  a hundred times as slow, and every row of a list says some time. */
function dayAndHours(ms: number, clock: ClockSetting): [day: string, hours: string] {
  const at = new Date(ms);
  if (clock === "utc") return [`${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}`, `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`];
  return [`${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`, `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`];
}

/** A time of day, or date and time when it is not today; with its zone. */
export function time(ms: number | null | undefined, clock: ClockSetting, now: number): string {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "—";
  const [day, hours] = dayAndHours(ms, clock);
  const text = day === dayAndHours(now, clock)[0] ? hours : `${day} ${hours}`;
  return clock === "utc" ? `${text}${NARROW}UTC` : text;
}

/** RFC 3339 with milliseconds, for hover and copying. */
export const rfc3339 = (ms: number | null | undefined) => (ms === null || ms === undefined || Number.isNaN(ms) ? "—" : new Date(ms).toISOString());

/** `exec_…7K2F9Q`; ids of others whole up to 20 characters, else 8 … 6. */
export function shortId(id: string | null | undefined): string {
  if (id === null || id === undefined) return "—";
  const own = /^([a-z]+)_[0-9A-HJKMNP-TV-Z]{26}$/.exec(id);
  if (own) return `${own[1]}_…${id.slice(-6)}`;
  return id.length <= 20 ? id : `${id.slice(0, 8)}…${id.slice(-6)}`;
}
