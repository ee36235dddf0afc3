// Between the plane's queries (`status=queued&agent=a`) and the addresses of the lists: a count on
// any page is a link to the list that shows exactly what was counted. Pure.

/** Keys of a list's address that the plane filters by, and what they are called there. */
export const KEYS = { state: "status", agent: "agent", fn: "function", category: "category", reason: "reason", label: "label", origin: "origin", q: "q" } as const;
const BACK: Record<string, string> = { ...Object.fromEntries(Object.entries(KEYS).map(([own, theirs]) => [theirs, own])), state: "state" };

/** The address of the list of executions (or runs) for a query that the plane gave. */
export function listLink(query: string, what: "executions" | "runs" = "executions"): string {
  const asked = new URLSearchParams(query);
  const shown = new URLSearchParams(what === "executions" ? { v: "executions" } : {});
  for (const [key, value] of asked) {
    const own = BACK[key];
    if (own) shown.set(own, value);
  }
  const [since, until] = [asked.get("since"), asked.get("until")];
  if (since) shown.set("t", `${since}..${until ?? ""}`);
  const text = shown.toString();
  return `/runs${text ? `?${text}` : ""}`;
}

/** The plane's query for what stands in the address. */
export function askOf(address: URLSearchParams, range: { since?: string; until?: string }): Record<string, string> {
  const asked: Record<string, string> = {};
  for (const [own, theirs] of Object.entries(KEYS)) {
    const value = address.get(own);
    if (value) asked[theirs] = value;
  }
  if (range.since) asked.since = range.since;
  if (range.until) asked.until = range.until;
  const sort = address.get("sort");
  if (sort) asked.sort = sort;
  return asked;
}
