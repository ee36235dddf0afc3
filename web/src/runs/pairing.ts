// Pairs the steps of two runs as a replay would: roots by function, then under each pair the calls
// of the same agent and function: what one took over from the other first, the rest by its index
// among equal calls. What has no partner stands alone. Knows nothing of payloads.
import { type Forest, type Step, childrenOf, has, nameOf } from "./forest";

export type Pair = {
  depth: number;
  a: Step | null;
  b: Step | null;
  name: string;
  /** Its number among the calls of this function by the same caller, from 1; 0 when it is the only one. */
  number: number;
  /** Its caller was taken over by the other run: so it did not have to run there again. */
  covered: boolean;
};

export function paired(a: Forest, b: Forest): Pair[] {
  const pairs: Pair[] = [];
  visit(a, b, a.roots, b.roots, 0, pairs, false);
  return pairs;
}

function visit(a: Forest, b: Forest, left: readonly number[], right: readonly number[], depth: number, pairs: Pair[], reused: boolean): void {
  const byName = new Map<string, [Step[], Step[]]>();
  const add = (forest: Forest, indexes: readonly number[], side: 0 | 1) => {
    for (const index of indexes) {
      const step = forest.steps[index];
      if (!step) continue;
      const name = nameOf(forest, step);
      const both = byName.get(name) ?? byName.set(name, [[], []]).get(name);
      both?.[side].push(step);
    }
  };
  add(a, left, 0);
  add(b, right, 1);
  const level: Pair[] = [];
  for (const [name, [ours, theirs]] of byName) {
    const count = Math.max(ours.length, theirs.length);
    for (const [at, [x, y]] of partners(ours, theirs).entries()) {
      level.push({ depth, a: x, b: y, name, number: count > 1 ? at + 1 : 0, covered: reused && (x === null || y === null) });
    }
  }
  // In the order of A's calls; what only B has comes where B called it, after what both have before.
  level.sort((x, y) => (x.a?.index ?? Number.POSITIVE_INFINITY) - (y.a?.index ?? Number.POSITIVE_INFINITY) || (x.b?.index ?? 0) - (y.b?.index ?? 0));
  for (const pair of level) {
    pairs.push(pair);
    visit(a, b, pair.a ? childrenOf(a, pair.a.index) : [], pair.b ? childrenOf(b, pair.b.index) : [], depth + 1, pairs, pair.covered || isReplay(pair.a, pair.b));
  }
}

/** Equal calls of two paired callers, side by side. */
function partners(ours: Step[], theirs: Step[]): [Step | null, Step | null][] {
  const taken = new Map<string, Step>();
  for (const step of theirs) if (step.replayOf) taken.set(step.replayOf, step);
  const found = new Map<Step, Step>();
  const used = new Set<Step>();
  for (const step of ours) {
    // B took it over from A, or A took it over from B.
    const other = taken.get(step.id) ?? (step.replayOf ? theirs.find((each) => each.id === step.replayOf) : undefined);
    if (other && !used.has(other)) {
      found.set(step, other);
      used.add(other);
    }
  }
  const rest = theirs.filter((step) => !used.has(step));
  const pairs = ours.map((step): [Step | null, Step | null] => [step, found.get(step) ?? rest.shift() ?? null]);
  return [...pairs, ...rest.map((step): [Step | null, Step | null] => [null, step])];
}

/** One step took the other over: same input by how a replay finds it, same result because it is that one. */
export const isReplay = (a: Step | null, b: Step | null): boolean =>
  a !== null && b !== null && ((has(b, "replayed") && b.replayOf === a.id) || (has(a, "replayed") && a.replayOf === b.id));

/** Whether the two sides of a pair ended alike, as far as the skeleton tells. */
export function differs(pair: Pair): boolean {
  if (pair.covered) return false;
  if (!pair.a || !pair.b) return true;
  return pair.a.state !== pair.b.state || pair.a.category !== pair.b.category;
}
