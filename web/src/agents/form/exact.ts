// JSON values with numbers kept as they are written: for schemas, whose defaults and choices may
// be integers that a number cannot hold. Objects have no prototype: any key is only a key.
import { type Node, type Tokens, decoded, keyOf, sourceOf, tokensOf } from "@/execution/json/tokens";

export class Numeral {
  constructor(readonly raw: string) {}
}
export type Exact = null | boolean | string | Numeral | Exact[] | { [key: string]: Exact };
export type ExactObject = { [key: string]: Exact };

/** Reads a text; `undefined` when it is no JSON. Deeper than `depthMax` it is cut to `null`. */
export function readExact(text: string, depthMax = 64): Exact | undefined {
  const tokens = tokensOf(text);
  return tokens.fault || tokens.more || tokens.nodes.length === 0 ? undefined : exactOf(tokens, 0, depthMax);
}

function exactOf(tokens: Tokens, index: number, depth: number): Exact {
  const node = tokens.nodes[index] as Node;
  switch (node.kind) {
    case "string": return decoded(sourceOf(tokens, node));
    case "number": return new Numeral(sourceOf(tokens, node));
    case "true": return true;
    case "false": return false;
    case "array":
    case "object": break;
    default: return null;
  }
  if (depth <= 0) return null;
  const list: Exact[] = [];
  const object = Object.create(null) as ExactObject;
  for (let at = index + 1; at < node.next; at = (tokens.nodes[at] as Node).next) {
    const value = exactOf(tokens, at, depth - 1);
    if (node.kind === "array") list.push(value);
    else object[keyOf(tokens, tokens.nodes[at] as Node) ?? ""] = value;
  }
  return node.kind === "array" ? list : object;
}

/** As JSON again. */
export function rawOf(value: Exact): string {
  if (value instanceof Numeral) return value.raw;
  if (Array.isArray(value)) return `[${value.map(rawOf).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${rawOf(each)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

export const isObject = (value: Exact | undefined): value is ExactObject =>
  value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Numeral);
