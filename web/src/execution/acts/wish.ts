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

/** The same on the command line. It has no way to give another input: then the request itself. */
export function commandOf(id: string, wish: RestartWish, origin: string): string {
  if (wish.input !== null) {
    return `curl -s ${origin}/api/v1/executions/${encodeURIComponent(id)}/restart -H 'content-type: application/json' -d ${quoted(bodyOf(wish))}`;
  }
  const flags = [
    ...(wish.scope === "workflow" ? [] : [`--scope ${wish.scope}`]),
    ...(wish.reuse === "succeeded-before" ? [] : [`--reuse ${wish.reuse}`]),
    ...(wish.fork ? ["--fork"] : []),
    ...(wish.reason.trim() ? [`--reason ${quoted(wish.reason.trim())}`] : []),
  ];
  return ["muster restart", id, ...flags].join(" ");
}

/** One word for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
