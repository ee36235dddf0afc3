// What a request that failed says. Every failure is one of these; none of them is an empty answer.

/** The plane's one error shape, or our own words for a plane that did not answer. */
export class Problem extends Error {
  constructor(
    /** `error_category` of the plane; `offline` when it did not answer at all. */
    readonly category: string,
    message: string,
    /** HTTP status; 0 when there was no answer. */
    readonly status: number,
    readonly detail: {
      /** When to come back, in milliseconds from `at`. */
      retryAfterMs?: number;
      executionId?: string;
      runId?: string;
      /** What to do, in the plane's words. */
      hint?: string;
      /** The field that was refused, where the plane names one. */
      field?: string;
      /** The scope that the key lacks, or several: `operate`, `read, call or agent`. */
      needs?: string;
      body?: unknown;
    } = {},
  ) {
    super(message);
    this.name = "Problem";
  }

  get offline(): boolean {
    return this.category === "offline";
  }
  get notFound(): boolean {
    return this.status === 404;
  }
  get needsKey(): boolean {
    return this.status === 401 || this.status === 403;
  }

  static of(error: unknown): Problem {
    if (error instanceof Problem) return error;
    return new Problem("internal_error", error instanceof Error ? error.message : String(error), 0);
  }
}

/** `details.needs`: the scope for which the plane refused. */
function needsOf(details: unknown): string | undefined {
  const needs = details && typeof details === "object" ? (details as Record<string, unknown>).needs : undefined;
  return typeof needs === "string" && needs !== "" ? needs : undefined;
}

/** Reads the one error shape from an answer that is no success. */
export async function problemOf(answer: Response): Promise<Problem> {
  const text = await answer.text().catch(() => "");
  let body: Record<string, unknown> = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (parsed && typeof parsed === "object") body = parsed as Record<string, unknown>;
  } catch {
    // Not the plane's own answer: something between us and it spoke.
  }
  const said = (key: string) => (typeof body[key] === "string" ? (body[key] as string) : undefined);
  const seconds = Number(answer.headers.get("retry-after") ?? Number.NaN);
  return new Problem(
    said("error_category") ?? said("error") ?? "internal_error",
    said("message") ?? said("error") ?? `the answer was HTTP ${answer.status} without a reason`,
    answer.status,
    {
      retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : undefined,
      executionId: said("execution_id"),
      runId: said("run_id"),
      hint: said("hint"),
      field: said("field"),
      needs: needsOf(body.details),
      body,
    },
  );
}
