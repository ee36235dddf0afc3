// Sends a call as it was typed and tells what came of it: accepted, ended, refused. Reads no
// result: the execution panel does, by range.
import { addressOf } from "@/api/client";
import { Problem, problemOf } from "@/api/problem";
import { quoted } from "@/execution/acts/wish";
import { compact, pathText } from "./form/text";
import { pathOfField } from "./form/check";

export type Lane = "async" | "sync";
export type Wanted = { target: string; input: string; lane: Lane; priority: number; key: string };

export type Sent =
  | { is: "stored"; execution: string; replayed: boolean }
  /** Refused, or ended badly: with the execution where one was stored. */
  | { is: "problem"; problem: Problem; execution?: string; field?: string };

/** The body, with the input digit by digit; 5 is what the plane takes anyway. */
export function bodyOf({ input, priority }: Pick<Wanted, "input" | "priority">): string {
  return `{"input":${compact(input) || "{}"}${priority === 5 ? "" : `,"priority":${priority}`}}`;
}

const addressFor = ({ target, lane }: Pick<Wanted, "target" | "lane">): string =>
  addressOf(lane === "async" ? "/api/v1/execute/async/{target}" : "/api/v1/execute/{target}", { path: { target } });

export function curlOf(wanted: Wanted, origin: string): string {
  const key = wanted.key.trim() ? ` -H ${quoted(`idempotency-key: ${wanted.key.trim()}`)}` : "";
  return `curl -s ${origin}${addressFor(wanted)} -H 'content-type: application/json'${key} -d ${quoted(bodyOf(wanted))}`;
}

/** The same for `muster`, which has no flag for a priority: then there is none. */
export function musterOf(wanted: Wanted): string | undefined {
  if (wanted.priority !== 5) return undefined;
  const flags = [
    ...(wanted.lane === "async" ? ["--async"] : []),
    ...(wanted.key.trim() ? [`--key ${quoted(wanted.key.trim())}`] : []),
  ];
  return ["muster call", wanted.target, "--input", quoted(compact(wanted.input) || "{}"), ...flags].join(" ");
}

/** `key`: makes a second click the same call. A sync call may take as long as the plane holds it. */
export async function sendCall(wanted: Wanted, key: string, signal: AbortSignal): Promise<Sent> {
  let answer: Response;
  try {
    answer = await fetch(addressFor(wanted), {
      method: "POST",
      credentials: "same-origin",
      headers: { accept: "application/json", "content-type": "application/json", "idempotency-key": wanted.key.trim() || key },
      body: bodyOf(wanted),
      signal,
    });
  } catch {
    const says = signal.aborted ? "you stopped waiting; it may have been accepted" : "the plane did not answer; it may have accepted the call: send it again, that is the same call";
    return { is: "problem", problem: new Problem("offline", says, 0) };
  }
  const execution = answer.headers.get("x-execution-id") ?? undefined;
  if (answer.ok && execution) {
    void answer.body?.cancel();
    return { is: "stored", execution, replayed: answer.headers.get("idempotency-replayed") === "true" };
  }
  if (answer.ok) {
    const said = (await answer.json()) as { execution_id?: string };
    if (said.execution_id) return { is: "stored", execution: said.execution_id, replayed: false };
    return { is: "problem", problem: new Problem("internal_error", "the plane named no execution", answer.status) };
  }
  const problem = await problemOf(answer);
  return { is: "problem", problem, execution: execution ?? problem.detail.executionId, field: fieldOf(problem) };
}

/** The field that a refusal is about, as a path of the form. */
export function fieldOf(problem: Problem): string | undefined {
  const body = problem.detail.body as { details?: { field?: unknown } } | undefined;
  const named = problem.detail.field ?? (typeof body?.details?.field === "string" ? body.details.field : undefined);
  return named === undefined ? undefined : pathText(pathOfField(named.replace(/^input\./, "")));
}
