// What somebody wants of a restart, and the request that asks for it. The input goes as it was
// typed, digit by digit.

export type Scope = "workflow" | "execution";
export type Reuse = "succeeded-before" | "all-succeeded" | "none";

export type RestartWish = {
  scope: Scope;
  reuse: Reuse;
  /** Beside what is there, also while it is open. */
  fork: boolean;
  /** Another input, as typed; `null` for the one that is stored. */
  input: string | null;
  reason: string;
};

/** The body of the request. An input that is no JSON makes a body that is none: the plane says so. */
export function bodyOf(wish: RestartWish): string {
  const parts = [
    `"scope":${JSON.stringify(wish.scope)}`,
    `"reuse":${JSON.stringify(wish.reuse)}`,
    ...(wish.fork ? ['"fork":true'] : []),
    ...(wish.reason.trim() ? [`"reason":${JSON.stringify(wish.reason.trim())}`] : []),
    ...(wish.input === null ? [] : [`"input":${wish.input.trim() || "null"}`]),
  ];
  return `{${parts.join(",")}}`;
}

/** The same on the command line. */
export function commandOf(id: string, wish: RestartWish): string {
  const flags = [
    ...(wish.scope === "workflow" ? [] : [`--scope ${wish.scope}`]),
    ...(wish.reuse === "succeeded-before" ? [] : [`--reuse ${wish.reuse}`]),
    ...(wish.fork ? ["--fork"] : []),
    ...(wish.input === null ? [] : [flag("--input", wish.input.trim() || "null")]),
    ...(wish.reason.trim() ? [flag("--reason", wish.reason.trim())] : []),
  ];
  return ["muster restart", id, ...flags].join(" ");
}

/** A flag and its value; a value that begins like a flag is tied to it. */
export function flag(name: string, value: string): string {
  return `${name}${value.startsWith("-") ? "=" : " "}${quoted(value)}`;
}

/** One word for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
