// JSON text, changed in one place and left alone everywhere else: what a field of the form does to
// the text that is the truth. A path is keys and positions.
import { type Node, type Tokens, keyOf, tokensOf } from "@/execution/json/tokens";

export type Path = readonly (string | number)[];

export const pathText = (path: Path): string => path.map((step) => (typeof step === "number" ? `[${step}]` : step)).join(".").replaceAll(".[", "[");

/** The node at a path; −1 when there is none. Of repeated keys the last one counts, as for parsers. */
export function nodeAt(tokens: Tokens, path: Path): number {
  let at = tokens.nodes.length > 0 ? 0 : -1;
  for (const step of path) {
    if (at < 0) return -1;
    at = childAt(tokens, at, step);
  }
  return at;
}

export function children(tokens: Tokens, index: number): number[] {
  const node = tokens.nodes[index];
  const found: number[] = [];
  if (!node) return found;
  for (let at = index + 1; at < node.next; at = (tokens.nodes[at] as Node).next) found.push(at);
  return found;
}

function childAt(tokens: Tokens, index: number, step: string | number): number {
  const node = tokens.nodes[index] as Node;
  let found = -1;
  if (node.kind !== (typeof step === "number" ? "array" : "object")) return -1;
  for (const child of children(tokens, index)) {
    const each = tokens.nodes[child] as Node;
    if (typeof step === "number" ? each.index === step : keyOf(tokens, each) === step) found = child;
  }
  return found;
}

/** The text with `raw` (JSON) at a path. What lies between and is not there yet is made. */
export function setAt(text: string, path: Path, raw: string): string {
  const tokens = tokensOf(text);
  if (tokens.nodes.length === 0) return wrapped(path, raw);
  let at = 0;
  for (const [depth, step] of path.entries()) {
    const child = childAt(tokens, at, step);
    if (child < 0) return inserted(tokens, at, step, wrapped(path.slice(depth + 1), raw));
    at = child;
  }
  const node = tokens.nodes[at] as Node;
  return text.slice(0, node.start) + raw + text.slice(node.end);
}

function wrapped(path: Path, raw: string): string {
  return [...path].reverse().reduce<string>((inner, step) => (typeof step === "number" ? `[${inner}]` : `{${JSON.stringify(step)}: ${inner}}`), raw);
}

/** A member or an element more, at the end, written as the ones before it. */
function inserted(tokens: Tokens, index: number, step: string | number, raw: string): string {
  const { text } = tokens;
  const node = tokens.nodes[index] as Node;
  const holds = node.kind === "object" || node.kind === "array";
  const entry = typeof step === "string" ? `${JSON.stringify(step)}: ${raw}` : raw;
  // A value stands where the path needs an object: it makes room.
  if (!holds || (node.kind === "object") !== (typeof step === "string")) {
    return text.slice(0, node.start) + (typeof step === "string" ? `{${entry}}` : `[${entry}]`) + text.slice(node.end);
  }
  const all = children(tokens, index);
  const last = tokens.nodes[all.at(-1) ?? -1];
  if (!last) return `${text.slice(0, node.start + 1)}${entry}${text.slice(node.end - 1)}`;
  const begins = last.keyStart >= 0 ? last.keyStart : last.start;
  const before = text.slice(0, begins);
  const line = /\n[ \t]*$/.exec(before)?.[0];
  return `${text.slice(0, last.end)},${line ?? " "}${entry}${text.slice(last.end)}`;
}

/** The text without what is at a path, and without the comma that it needed. */
export function removeAt(text: string, path: Path): string {
  const tokens = tokensOf(text);
  const at = nodeAt(tokens, path);
  const node = tokens.nodes[at];
  if (!node || node.parent < 0) return text;
  const siblings = children(tokens, node.parent);
  const place = siblings.indexOf(at);
  const begin = (each: Node) => (each.keyStart >= 0 ? each.keyStart : each.start);
  const next = tokens.nodes[siblings[place + 1] ?? -1];
  if (next) return text.slice(0, begin(node)) + text.slice(begin(next));
  const previous = tokens.nodes[siblings[place - 1] ?? -1];
  if (previous) return text.slice(0, previous.end) + text.slice(node.end);
  const holder = tokens.nodes[node.parent] as Node;
  return text.slice(0, holder.start + 1) + text.slice(holder.end - 1);
}

/** The text without spaces between its parts; what is inside strings stays. */
export function compact(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"?|\s+/gs, (part) => (part.startsWith('"') ? part : ""));
}
