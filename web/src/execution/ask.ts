// Asks the plane to act on something, or what it would do: one request, its answer as JSON. What
// it changed is read again wherever it is shown.
import { addressOf, send } from "@/api/client";
import { Problem } from "@/api/problem";
import { queries } from "@/api/queries";

export type Wish = {
  path: Record<string, string>;
  query?: Record<string, unknown>;
  /** A value, or JSON as it is to be sent: an input keeps every digit. */
  body?: unknown;
  /** Makes a repetition harmless. */
  key?: string;
  method?: "POST" | "PUT" | "DELETE";
};

/** Sends an act and reads its answer. Throws a `Problem`. */
export async function ask<T>(template: string, wish: Wish): Promise<T> {
  const body = wish.body === undefined ? "{}" : typeof wish.body === "string" ? wish.body : JSON.stringify(wish.body);
  const answer = await send(addressOf(template, wish), {
    method: wish.method ?? "POST",
    headers: {
      accept: "application/json",
      "content-type": "application/json",
      ...(wish.key === undefined ? {} : { "idempotency-key": wish.key }),
    },
    body,
  });
  return (await answer.json()) as T;
}

/** Asks what an act would do; nothing changes. A plane that does not say so may have done it. */
export async function wouldDo<T>(template: string, wish: Wish): Promise<T> {
  const said = await ask<T & { dry_run?: boolean }>(template, { ...wish, query: { ...wish.query, dry_run: true } });
  if (said.dry_run !== true) {
    touched(...Object.values(wish.path));
    throw new Problem("not_supported", "the plane did not say what this would do; look whether it did it at once", 501);
  }
  return said;
}

/** What is cached about any of these ids is asked again. */
export function touched(...ids: (string | undefined)[]): void {
  const wanted = ids.filter((id): id is string => id !== undefined);
  void queries.invalidateQueries({
    predicate: ({ queryKey }) => {
      // An input never changes.
      if (queryKey[0] === "payload" && queryKey[2] === "input") return false;
      const text = JSON.stringify(queryKey);
      return wanted.some((id) => text.includes(id));
    },
  });
}
