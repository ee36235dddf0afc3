// Real answers of the plane, changed on their way to the page: with null for all that is no name or
// count, or with words that no page has heard of. Streams, steps' ids and the session stay.
import type { Page } from "playwright-core";
import { UNHEARD, emptied } from "@/shell/answers";

type Object = Record<string, unknown>;
const isObject = (value: unknown): value is Object => value !== null && typeof value === "object" && !Array.isArray(value);

/** Columns without which there are no steps at all: which one is called by which, and as what. */
const BONES = ["index", "id", "parent", "name", "created", "attempts", "flags", "segments", "state"];

/** Null in place of every value that is no id, name, state or count. */
export function nothingKnown(told: unknown): unknown {
  const empty = emptied(told, false);
  if (!isObject(told) || !isObject(told.columns) || !isObject(empty)) return empty;
  const columns = told.columns as Record<string, unknown[]>;
  return { ...empty, names: told.names, columns: Object.fromEntries(Object.entries(columns).map(([name, all]) => [name, BONES.includes(name) ? all : all.map(() => null)])) };
}

const WORDS = /^(state|status|reason|category|error_category|severity|origin|lane|kind)$/;

/** Every word of state, reason and kind is one of a newer plane. */
export function newWords(told: unknown, name = ""): unknown {
  if (Array.isArray(told)) return told.map((each) => newWords(each, name));
  if (isObject(told)) return Object.fromEntries(Object.entries(told).map(([key, value]) => [key, newWords(value, key)]));
  return typeof told === "string" && WORDS.test(name) ? UNHEARD : told;
}

/** Changes every answer that the page gets from now on. */
export async function change(page: Page, how: (told: unknown) => unknown): Promise<void> {
  await page.route(/\/api\/v1\/(?!session|events)/, async (route) => {
    if (route.request().method() !== "GET") return route.continue();
    try {
      const answer = await route.fetch();
      const isJson = (answer.headers()["content-type"] ?? "").startsWith("application/json");
      await (answer.ok() && isJson ? route.fulfill({ response: answer, json: how(await answer.json()) }) : route.fulfill({ response: answer }));
    } catch {
      // The page went on to another place meanwhile, and wants no answer.
      await route.abort().catch(() => undefined);
    }
  });
}
