// Made-up answers of the plane for tests, from the schemas of openapi.json: everything that may be
// null is, everything that may be left out is, and every word is one that this page does not know.
import { readFileSync } from "node:fs";
import { join } from "node:path";

type Schema = {
  $ref?: string; type?: string | string[]; enum?: unknown[]; const?: unknown; oneOf?: Schema[]; anyOf?: Schema[]; allOf?: Schema[];
  properties?: Record<string, Schema>; required?: string[]; items?: Schema; prefixItems?: Schema[]; additionalProperties?: Schema | boolean; format?: string; minimum?: number;
};
type Document = { paths: Record<string, Record<string, { responses?: Record<string, { content?: Record<string, { schema?: Schema }> }> }>>; components: { schemas: Record<string, Schema> } };

/** A word of a newer plane. */
export const UNHEARD = "levitating";
/** A number that no page would make up. */
export const SEVEN = 7;
export const AT = "2026-11-30T08:00:00.000Z";

/**
 * `nulls`: as little as the schema allows; `whole`: everything that it names; `broken`: as a plane
 * that forgot its schema would, null for all but ids, names, states and counts; `hollow`: so, and
 * the objects in the rows of lists too.
 */
export type How = "nulls" | "whole" | "broken" | "hollow";

export const document = JSON.parse(readFileSync(join(process.cwd(), "..", "openapi.json"), "utf8")) as Document;

export function madeUp(schema: Schema | undefined, how: How, depth = 0): unknown {
  if (!schema || depth > 18) return null;
  if (schema.$ref) return madeUp(document.components.schemas[schema.$ref.split("/").at(-1) ?? ""], how, depth + 1);
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((each) => madeUp(each, how, depth + 1)));
  const several = schema.oneOf ?? schema.anyOf;
  if (several) {
    const none = several.some((each) => each.type === "null");
    if (none && how === "nulls") return null;
    const words = several.every((each) => each.const !== undefined || (each.enum && each.type === "string"));
    return words ? UNHEARD : madeUp(several.find((each) => each.type !== "null"), how, depth + 1);
  }
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum.every((each) => typeof each === "string") ? UNHEARD : schema.enum[0];
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  if (types.includes("null") && how === "nulls") return null;
  switch (types.find((type) => type !== "null")) {
    case "string": return schema.format === "date-time" ? AT : "made-up";
    case "integer":
    case "number": return SEVEN;
    case "boolean": return false;
    case "array":
      if (schema.prefixItems) return schema.prefixItems.map((each) => madeUp(each, how, depth + 1));
      return [madeUp(schema.items, how, depth + 1)];
    default: {
      const object: Record<string, unknown> = {};
      for (const [name, member] of Object.entries(schema.properties ?? {})) {
        if (how === "whole" || schema.required?.includes(name)) object[name] = named(name, member, how, depth);
      }
      if (typeof schema.additionalProperties === "object") object[UNHEARD] = madeUp(schema.additionalProperties, how, depth + 1);
      return object;
    }
  }
}

/** Times and cursors have no format of their own in every schema; their names say what they are. */
function named(name: string, schema: Schema, how: How, depth: number): unknown {
  const value = madeUp(schema, how, depth + 1);
  if (value !== "made-up") return value;
  if (/(^|_)(at|since|until|from|to|oldest|sent|ended)$|_at$/.test(name)) return AT;
  return name === "path" ? "/ui/runs" : name.endsWith("cursor") ? null : value;
}

const KEPT = /^(.*_?id|agent|name|node|duty|key|kind|count|total|position|as_of|function|target|state|status)$/;

/** Null in place of every value that is not kept; lists and objects stay. */
export function emptied(value: unknown, hollow: boolean, name = "", inRow = false): unknown {
  if (Array.isArray(value)) return value.map((each) => emptied(each, hollow, name, true));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, hollow && inRow && typeof each === "object" && !Array.isArray(each) ? null : emptied(each, hollow, key, inRow)]));
  }
  return KEPT.test(name) ? value : null;
}

/** The JSON with which the plane would answer this address; `undefined`: there is no such route. */
export function answerTo(address: string, how: How): unknown {
  const path = address.split("?")[0] ?? "";
  const exact = Object.keys(document.paths).find((each) => new RegExp(`^${each.replaceAll(/\{[^}]+\}/g, "[^/]+")}$`).test(path));
  const schema = exact === undefined ? undefined : document.paths[exact]?.get?.responses?.["200"]?.content?.["application/json"]?.schema;
  if (!schema) return undefined;
  const answer = (how === "broken" || how === "hollow" ? emptied(madeUp(schema, "whole"), how === "hollow") : madeUp(schema, how)) as Record<string, unknown>;
  for (const key of Object.keys(answer ?? {})) if (/cursor|next_before/.test(key)) answer[key] = null;
  return answer;
}
