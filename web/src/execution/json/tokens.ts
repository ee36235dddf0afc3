// Reads JSON as it is written, for looking at it: nothing is turned into a number or an object, so
// an integer keeps every digit, a repeated key stays repeated, and a text that is cut off or wrong
// is read as far as it goes. No recursion: depth is data, not stack.

export type Kind = "object" | "array" | "string" | "number" | "true" | "false" | "null" | "odd";

/** One value: slices of the text, and where it hangs. Nodes are in the order of the text. */
export type Node = {
  kind: Kind;
  /** From its first character to behind its last one. */
  start: number;
  end: number;
  /** Its key with its quotes; −1 outside objects. */
  keyStart: number;
  keyEnd: number;
  /** The node that holds it; −1 for the outermost. */
  parent: number;
  depth: number;
  /** Its place in what holds it. */
  index: number;
  /** Members or elements. */
  count: number;
  /** The node behind everything inside it. */
  next: number;
  /** Its end is not in the text. */
  cut: boolean;
};

export type Fault = { at: number; says: string };

export type Tokens = {
  text: string;
  nodes: Node[];
  /** The first thing that is no JSON; reading went on where it could. */
  fault?: Fault;
  /** Reading stopped here, for the fault or at the bound. */
  stopped?: number;
  /** More values than are kept. */
  more: boolean;
};

export type Options = {
  /** The text is the beginning of a longer one: running out is no fault. */
  partial?: boolean;
  /** At most so many values. */
  nodesMax?: number;
};

const NODES_MAX = 200_000;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /[-+.\w$]+/y;

type Wanted = "value" | "first" | "key" | "first-key" | "after" | "end";

export function tokensOf(text: string, { partial = false, nodesMax = NODES_MAX }: Options = {}): Tokens {
  const nodes: Node[] = [];
  const holders: number[] = [];
  const done: Tokens = { text, nodes, more: false };
  let at = 0;
  let key: [number, number] | undefined;
  /** What may come: a value, a key (or the end of an empty object), what follows a value, or nothing. */
  let wants = "value" as Wanted;

  const flaw = (where: number, says: string) => {
    done.fault ??= { at: where, says };
  };
  const stop = (where: number, says: string) => {
    flaw(where, says);
    done.stopped = where;
  };
  const add = (kind: Kind, start: number, end: number, cut: boolean): number => {
    const parent = holders.at(-1) ?? -1;
    const holder = nodes[parent];
    nodes.push({
      kind, start, end, cut, parent, depth: holders.length, count: 0, next: nodes.length + 1,
      keyStart: key?.[0] ?? -1, keyEnd: key?.[1] ?? -1, index: holder?.count ?? 0,
    });
    if (holder) holder.count += 1;
    key = undefined;
    return nodes.length - 1;
  };
  const close = (end: number) => {
    const closed = nodes[holders.pop() ?? -1];
    if (closed) {
      closed.end = end;
      closed.cut = false;
      closed.next = nodes.length;
    }
    wants = holders.length > 0 ? "after" : "end";
  };
  const settle = () => {
    wants = holders.length > 0 ? "after" : "end";
  };

  if (text.charCodeAt(0) === 0xfeff) {
    flaw(0, "a byte order mark");
    at = 1;
  }
  for (;;) {
    at = skipSpace(text, at);
    if (at >= text.length) break;
    if (wants === "end") {
      stop(at, "more text behind the value");
      break;
    }
    const character = text[at] as string;
    const holder = nodes[holders.at(-1) ?? -1];
    if (wants === "after") {
      if (character === ",") {
        at += 1;
        wants = holder?.kind === "object" ? "key" : "value";
      } else if (character === (holder?.kind === "object" ? "}" : "]")) {
        at += 1;
        close(at);
      } else {
        stop(at, `expected a comma or the end of the ${holder?.kind ?? "value"}`);
        break;
      }
      continue;
    }
    if (wants === "key" || wants === "first-key") {
      if (character === "}") {
        if (wants === "key") flaw(at, "a comma before the end");
        at += 1;
        close(at);
        continue;
      }
      if (character !== '"') {
        stop(at, "expected a key in quotes");
        break;
      }
      const end = stringEnd(text, at, flaw);
      if (end < 0) {
        at = text.length;
        break;
      }
      key = [at, end];
      at = skipSpace(text, end);
      if (at >= text.length) break;
      if (text[at] !== ":") {
        stop(at, "expected a colon after the key");
        break;
      }
      at += 1;
      wants = "value";
      continue;
    }
    // A value, or the end of an empty array.
    if (character === "]" && holder?.kind === "array" && key === undefined) {
      if (wants !== "first") flaw(at, "a comma before the end");
      at += 1;
      close(at);
      continue;
    }
    if (nodes.length >= nodesMax) {
      done.more = true;
      done.stopped = at;
      break;
    }
    if (character === "{" || character === "[") {
      holders.push(add(character === "{" ? "object" : "array", at, text.length, true));
      wants = character === "{" ? "first-key" : "first";
      at += 1;
    } else if (character === '"') {
      const end = stringEnd(text, at, flaw);
      add("string", at, end < 0 ? text.length : end, end < 0);
      if (end < 0) {
        at = text.length;
        break;
      }
      at = end;
      settle();
    } else {
      const end = wordEnd(text, at);
      if (end === at) {
        stop(at, `${JSON.stringify(character)} cannot begin a value`);
        break;
      }
      const word = text.slice(at, end);
      const cut = partial && end === text.length && holders.length > 0;
      const kind = kindOf(word);
      if (kind === "odd" && !cut) flaw(at, `${word.length > 24 ? `${word.slice(0, 24)}…` : word} is no JSON value`);
      add(kind, at, end, cut);
      at = end;
      settle();
    }
  }
  if (done.stopped === undefined && wants !== "end" && !partial) {
    flaw(text.length, nodes.length === 0 ? "there is nothing" : "the text ends before the value does");
  }
  const last = done.stopped ?? text.length;
  for (const open of holders) {
    const node = nodes[open] as Node;
    node.end = last;
    node.next = nodes.length;
  }
  return done;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) at += 1;
    else return at;
  }
}

/** Behind the closing quote of the string that begins here; −1 when there is none. */
function stringEnd(text: string, from: number, flaw: (at: number, says: string) => void): number {
  for (let at = from + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return at + 1;
    if (code === 0x5c) at += 1;
    else if (code < 0x20) flaw(at, "a control character in a string");
  }
  return -1;
}

function wordEnd(text: string, from: number): number {
  WORD.lastIndex = from;
  return WORD.test(text) ? WORD.lastIndex : from;
}

function kindOf(word: string): Kind {
  if (word === "true" || word === "false" || word === "null") return word;
  NUMBER.lastIndex = 0;
  return NUMBER.test(word) && NUMBER.lastIndex === word.length ? "number" : "odd";
}

const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", '"': '"', "\\": "\\", "/": "/" };

/** The characters of a string literal, with or without its end. What is no escape stays as written. */
export function decoded(literal: string): string {
  const closed = literal.length > 1 && literal.endsWith('"');
  const inside = literal.slice(1, closed ? -1 : undefined);
  if (!inside.includes("\\")) return inside;
  return inside.replace(/\\(?:u([0-9a-fA-F]{4})|(.)|$)/gs, (whole, hex: string | undefined, short: string | undefined) => {
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
    return short === undefined ? whole : (ESCAPES[short] ?? whole);
  });
}

/** The key of a node, decoded; `undefined` outside objects. */
export function keyOf(tokens: Tokens, node: Node): string | undefined {
  return node.keyStart < 0 ? undefined : decoded(tokens.text.slice(node.keyStart, node.keyEnd));
}

/** The text of a node as it is written. */
export const sourceOf = (tokens: Tokens, node: Node): string => tokens.text.slice(node.start, node.end);

/** Where a node is: `$.rows[3]["odd key"]`. */
export function pathOf(tokens: Tokens, index: number): string {
  const steps: string[] = [];
  for (let node = tokens.nodes[index]; node && node.parent >= 0; node = tokens.nodes[node.parent]) {
    const key = keyOf(tokens, node);
    if (key === undefined) steps.push(`[${node.index}]`);
    else steps.push(/^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`);
  }
  return `$${steps.reverse().join("")}`;
}
