// Speaks to the plane: one typed function for reading, one for acting. Types come from
// openapi.json. Payloads never pass here: they are text and are read by `payload.ts`.
import type { paths } from "muster-openapi";
import { heard } from "@/live/clock";
import { Problem, problemOf } from "./problem";

type Method = "get" | "post" | "put" | "delete";
type Operation<P extends keyof paths, M extends Method> = paths[P][M];
type Parameters<O, Where extends "path" | "query"> = O extends { parameters: infer A }
  ? Where extends keyof A
    ? NonNullable<A[Where]>
    : undefined
  : undefined;
type Body<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : unknown;
type Success<O> = O extends { responses: infer R } ? R[keyof R & (200 | 201 | 202)] : never;
/** The JSON of a success. */
export type AnswerOf<P extends keyof paths, M extends Method = "get"> =
  Success<Operation<P, M>> extends { content: { "application/json": infer J } } ? J : unknown;

/** The routes that have this method. */
export type Routes<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: object } ? P : never;
}[keyof paths];

export type Ask<P extends keyof paths, M extends Method> = {
  path?: Parameters<Operation<P, M>, "path">;
  query?: Parameters<Operation<P, M>, "query">;
  body?: Body<Operation<P, M>>;
  signal?: AbortSignal;
};

/** The address of a route, its values percent-encoded. */
export function addressOf(
  template: string,
  ask: { path?: unknown; query?: unknown } = {},
): string {
  const values = (ask.path ?? {}) as Record<string, string>;
  const address = template.replace(/\{(\w+)\}/g, (_, key: string) =>
    encodeURIComponent(values[key] ?? ""),
  );
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries((ask.query ?? {}) as Record<string, unknown>)) {
    if (value !== undefined && value !== null && value !== "") query.set(key, String(value));
  }
  const text = query.toString();
  return text ? `${address}?${text}` : address;
}

/** How long a request may take before it counts as unanswered. */
const TIMEOUT_MS = 30_000;

/** Sends one request. Throws a `Problem` for everything that is no success. */
export async function send(address: string, init: RequestInit = {}): Promise<Response> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const signal = init.signal ? AbortSignal.any([init.signal, timeout]) : timeout;
  const asked = performance.now();
  let answer: Response;
  try {
    answer = await fetch(address, { ...init, signal, credentials: "same-origin" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Problem("offline", `the plane did not answer (${address.split("?")[0]})`, 0);
  }
  heard(answer.headers.get("date"), asked);
  if (!answer.ok && answer.status !== 304) throw await problemOf(answer);
  return answer;
}

async function json(answer: Response): Promise<unknown> {
  if (answer.status === 204) return undefined;
  const text = await answer.text();
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    throw new Problem("internal_error", "the plane's answer is not JSON", answer.status);
  }
}

/** Reads. */
export async function get<P extends Routes<"get">>(
  template: P,
  ask: Ask<P, "get"> = {},
): Promise<AnswerOf<P, "get">> {
  const answer = await send(addressOf(template as string, ask), {
    headers: { accept: "application/json" },
    signal: ask.signal,
  });
  return (await json(answer)) as AnswerOf<P, "get">;
}

/**
 * Acts. `key` makes a repetition harmless: a second click, or a retry after a lost answer, is one
 * change. Make it when the person decides, not when the request is sent.
 */
export async function act<M extends "post" | "put" | "delete", P extends Routes<M>>(
  method: M,
  template: P,
  ask: Ask<P, M> & { key?: string } = {},
): Promise<AnswerOf<P, M>> {
  const headers: Record<string, string> = {
    accept: "application/json",
    "content-type": "application/json",
    "idempotency-key": ask.key ?? crypto.randomUUID(),
  };
  const answer = await send(addressOf(template as string, ask), {
    method: method.toUpperCase(),
    headers,
    body: ask.body === undefined ? "{}" : typeof ask.body === "string" ? ask.body : JSON.stringify(ask.body),
    signal: ask.signal,
  });
  return (await json(answer)) as AnswerOf<P, M>;
}
