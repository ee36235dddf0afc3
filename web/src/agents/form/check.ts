// What a schema would object to in a text, as warnings at the field: only the plane refuses.
// Checks shapes and bounds; runs no pattern of an agent's, which could be made to hang.
import { type Node, type Tokens, decoded, keyOf, sourceOf } from "@/execution/json/tokens";
import type { Branch, Field } from "./model";
import { type Path, children, nodeAt } from "./text";

export type Warning = { path: Path; says: string };

/** More than this are not collected. */
const WARNINGS_MAX = 100;
const DEPTH_MAX = 40;

export function warningsOf(field: Field, tokens: Tokens): Warning[] {
  const found: Warning[] = [];
  if (tokens.nodes.length > 0) check(field, tokens, 0, [], found);
  return found;
}

function check(field: Field, tokens: Tokens, index: number, path: Path, found: Warning[]): void {
  if (found.length >= WARNINGS_MAX || path.length > DEPTH_MAX) return;
  const node = tokens.nodes[index] as Node;
  const warn = (says: string) => found.push({ path, says });
  if (node.kind === "null" && (field.nullable || field.kind === "null" || field.kind === "json")) return;
  if (field.kind === "json") return;
  if (!suits(field, tokens, index)) {
    warn(`is ${node.kind === "odd" ? "no JSON value" : node.kind}, not ${nameOf(field)}`);
    return;
  }
  const source = sourceOf(tokens, node);
  const { bounds } = field;
  if (field.kind === "text") {
    const length = [...decoded(source)].length;
    if (bounds.minLength !== undefined && length < bounds.minLength) warn(`is shorter than ${bounds.minLength}`);
    if (bounds.maxLength !== undefined && length > bounds.maxLength) warn(`is longer than ${bounds.maxLength}`);
  } else if (field.kind === "number" || field.kind === "integer") {
    const value = Number(source);
    if (bounds.min !== undefined && value < bounds.min) warn(`is below ${bounds.min}`);
    if (bounds.over !== undefined && value <= bounds.over) warn(`is not above ${bounds.over}`);
    if (bounds.max !== undefined && value > bounds.max) warn(`is above ${bounds.max}`);
    if (bounds.under !== undefined && value >= bounds.under) warn(`is not below ${bounds.under}`);
  } else if (field.kind === "list") {
    if (bounds.minItems !== undefined && node.count < bounds.minItems) warn(`has fewer than ${bounds.minItems}`);
    if (bounds.maxItems !== undefined && node.count > bounds.maxItems) warn(`has more than ${bounds.maxItems}`);
    const item = field.item?.();
    if (item) for (const [place, child] of children(tokens, index).entries()) check(item, tokens, child, [...path, place], found);
  } else if (field.kind === "object") {
    checkObject(field, tokens, index, path, found);
  } else if (field.kind === "union") {
    const branch = branchOf(field, tokens, index);
    if (branch) check(branch.field(), tokens, index, path, found);
  }
}

function checkObject(field: Field, tokens: Tokens, index: number, path: Path, found: Warning[]): void {
  const known = new Map(field.members.map((member) => [member.name, member]));
  for (const member of field.members) {
    const at = nodeAt(tokens, [...path, member.name]);
    if (at >= 0) check(member.field(), tokens, at, [...path, member.name], found);
    else if (member.required) found.push({ path: [...path, member.name], says: "is required" });
  }
  for (const child of children(tokens, index)) {
    const key = keyOf(tokens, tokens.nodes[child] as Node) ?? "";
    if (known.has(key)) continue;
    if (field.others === false) found.push({ path: [...path, key], says: "is not in the schema" });
    else check(field.others(), tokens, child, [...path, key], found);
  }
}

const nameOf = (field: Field): string => ({ text: "a string", integer: "an integer", list: "a list", object: "an object", choice: "one of the choices" } as Record<string, string>)[field.kind] ?? `a ${field.kind}`;

/** Whether a value is of the field's kind at all. */
export function suits(field: Field, tokens: Tokens, index: number): boolean {
  const node = tokens.nodes[index] as Node;
  const source = sourceOf(tokens, node);
  switch (field.kind) {
    case "text": return node.kind === "string";
    case "integer": return node.kind === "number" && /^-?\d+(\.0+)?$/.test(source);
    case "number": return node.kind === "number";
    case "boolean": return node.kind === "true" || node.kind === "false";
    case "choice": return field.choices.some((choice) => choice === source || (node.kind === "string" && choice.startsWith('"') && decoded(choice) === decoded(source)));
    case "object": return node.kind === "object";
    case "list": return node.kind === "array";
    case "null": return node.kind === "null";
    case "union": return node.kind === "null" ? field.nullable : branchOf(field, tokens, index) !== undefined;
    case "json": return true;
  }
}

/** The alternative that a value is: of its kind, with the most of its required fields and constants. */
export function branchOf(field: Field, tokens: Tokens, index: number): Branch | undefined {
  let best: { branch: Branch; score: number } | undefined;
  for (const branch of field.branches) {
    const inside = branch.field();
    if (inside.kind !== "json" && !suits(inside, tokens, index)) continue;
    let score = inside.kind === "json" ? -1 : 0;
    for (const member of inside.members) {
      const at = nodeAt2(tokens, index, member.name);
      if (at < 0) score -= member.required ? 2 : 0;
      else score += suits(member.field(), tokens, at) ? 2 : -2;
    }
    if (!best || score > best.score) best = { branch, score };
  }
  return best?.branch;
}

/** The member of this name in the object at `index`. */
function nodeAt2(tokens: Tokens, index: number, name: string): number {
  return children(tokens, index).find((child) => keyOf(tokens, tokens.nodes[child] as Node) === name) ?? -1;
}

/** The path of a field as the plane names it: `place.tags.0`. */
export function pathOfField(field: string): Path {
  return field.split(".").filter(Boolean).map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}
