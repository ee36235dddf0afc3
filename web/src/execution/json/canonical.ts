// One way to write JSON, so that two payloads can be compared line by line: keys sorted, a value a
// line, numbers and strings as they were written. A text that is no JSON stays as it is.
import { type Node, type Tokens, keyOf, tokensOf } from "./tokens";

/** More values than this are not written out. */
const NODES_MAX = 100_000;
/** Deeper than this, indentation stops growing. */
const INDENT_MAX = 40;

/** The lines; of a text that is no JSON, or too large for it, its own lines. */
export function canonicalLines(text: string): string[] {
  const tokens = tokensOf(text, { nodesMax: NODES_MAX });
  if (tokens.fault || tokens.more || tokens.nodes.length === 0) return text.split("\n");
  const lines: string[] = [];
  // A stack, not recursion: depth is data.
  type Step = { node: number; comma: boolean } | { close: string };
  const steps: Step[] = [{ node: 0, comma: false }];
  while (steps.length > 0) {
    const step = steps.pop() as Step;
    if ("close" in step) {
      lines.push(step.close);
      continue;
    }
    const node = tokens.nodes[step.node] as Node;
    const indent = "  ".repeat(Math.min(node.depth, INDENT_MAX));
    const key = node.keyStart < 0 ? "" : `${tokens.text.slice(node.keyStart, node.keyEnd)}: `;
    const comma = step.comma ? "," : "";
    const children = childrenOf(tokens, step.node);
    if (node.kind !== "object" && node.kind !== "array") {
      lines.push(`${indent}${key}${tokens.text.slice(node.start, node.end)}${comma}`);
    } else if (children.length === 0) {
      lines.push(`${indent}${key}${node.kind === "array" ? "[]" : "{}"}${comma}`);
    } else {
      lines.push(`${indent}${key}${node.kind === "array" ? "[" : "{"}`);
      steps.push({ close: `${indent}${node.kind === "array" ? "]" : "}"}${comma}` });
      const ordered = node.kind === "object" ? sorted(tokens, children) : children;
      for (let at = ordered.length - 1; at >= 0; at -= 1) steps.push({ node: ordered[at] as number, comma: at < ordered.length - 1 });
    }
  }
  return lines;
}

function childrenOf(tokens: Tokens, index: number): number[] {
  const node = tokens.nodes[index] as Node;
  const children: number[] = [];
  for (let at = index + 1; at < node.next; at = (tokens.nodes[at] as Node).next) children.push(at);
  return children;
}

/** By key; repeated keys keep their order. */
function sorted(tokens: Tokens, children: number[]): number[] {
  const named = children.map((index) => ({ index, key: keyOf(tokens, tokens.nodes[index] as Node) ?? "" }));
  return named.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.index - b.index)).map(({ index }) => index);
}
