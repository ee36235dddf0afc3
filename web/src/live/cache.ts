// Keeps the cache of answers fresh from the stream: an event marks what it can have changed as
// stale, by id; what is on screen is fetched again, four times a second at most. Pages need not
// listen for what they read with `useGet`. Exceptions are in `touches`.
import type { QueryClient } from "@tanstack/react-query";
import type { LiveFrame, PlaneEvent } from "./stream";
import { onFrame } from "./stream";

/** As made by `keyOf`: route, values of its path, query. */
export type Key = readonly unknown[];

const FLUSH_MS = 250;
/** Read by their own page as it needs them: windows of steps, pages of lists, payloads, searches. */
const OWN = /\/steps$|\/payload\/|\/search$|\/groups$|^\/api\/v1\/(runs|executions)$/;

const TOPICS: Record<string, RegExp> = {
  summary: /^\/api\/v1\/(overview|health|system|hold|approvals|quarantine|webhooks|llm-circuits|tags)$/,
  queues: /^\/api\/v1\/queues/,
  agents: /^\/api\/v1\/(nodes|discovery\/capabilities)$/,
  fleet: /^\/api\/v1\/fleet(\/(nodes|workers|drift|placements))?$/,
};

/** Whether a frame can have changed the answer under this key. */
export function touches(frame: LiveFrame, key: Key): boolean {
  const [route, path] = key as [unknown, Record<string, unknown> | null];
  if (typeof route !== "string" || OWN.test(route)) return false;
  if (frame.type === "resync") return true;
  if (frame.type === "changed") return TOPICS[frame.topic]?.test(route) ?? false;
  return eventTouches(frame.event, route, path ?? {});
}

function eventTouches(event: PlaneEvent, route: string, path: Record<string, unknown>): boolean {
  const about = new Set([event.execution_id, event.run_id, event.agent, event.node, event.worker].filter(Boolean));
  const named = Object.values(path);
  const word = event.kind.split(".")[0] ?? "";
  // An agent's page shows more than its executions move; those come with the queues' topic.
  const execution = word === "execution" || word === "approval" || word === "run";
  if (named.length > 0) {
    if (!named.some((value) => about.has(value as string))) return false;
    return !(execution && /^\/api\/v1\/(nodes|fleet)\//.test(route));
  }
  switch (word) {
    case "approval":
      return route === "/api/v1/approvals";
    case "instance":
    case "agent":
    case "llm":
      return TOPICS.agents?.test(route) === true || (word === "llm" && route === "/api/v1/llm-circuits");
    case "node":
    case "worker":
    case "fleet":
      return TOPICS.fleet?.test(route) === true;
    case "hold":
      return route === "/api/v1/hold" || route === "/api/v1/queues";
    default:
      return false;
  }
}

/** Follows the stream for one client; answers how to stop. */
export function keepFresh(client: QueryClient, listen: (listener: (frame: LiveFrame) => void) => () => void = onFrame): () => void {
  const stale = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    const busy: string[] = [];
    for (const query of client.getQueryCache().getAll()) {
      if (!stale.has(query.queryHash)) continue;
      // What was asked before the event may not know of it yet: ask again once it is there.
      if (query.state.fetchStatus === "fetching") busy.push(query.queryHash);
      else void client.invalidateQueries({ queryKey: query.queryKey, exact: true });
    }
    stale.clear();
    for (const hash of busy) stale.add(hash);
    if (busy.length > 0) timer = setTimeout(flush, FLUSH_MS);
  };
  const stop = listen((frame) => {
    for (const query of client.getQueryCache().getAll()) {
      if (!stale.has(query.queryHash) && touches(frame, query.queryKey)) stale.add(query.queryHash);
    }
    if (stale.size > 0) timer ??= setTimeout(flush, FLUSH_MS);
  });
  return () => {
    stop();
    clearTimeout(timer);
  };
}
