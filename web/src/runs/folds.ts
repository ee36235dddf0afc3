// Which rows are drawn of a forest: filters first, then the folds, in the order in which the page
// promises them. Remembers what it decided, so that live changes move nothing: see `Memory`.
import { type FoldState, groupKey, stepKey } from "./fold-state";
import { type Forest, type Step, callersOf, childrenOf, has, isOpen, tookOf, troubleOf } from "./forest";

export type Filter = {
  /** `all`, `open`, `trouble` (failed or out of time), `absorbed`, `reused`; any other word is a state. */
  only: string;
  /** Only what took longer, in milliseconds. */
  slower: number | null;
};

export type StepRow = {
  kind: "step";
  key: string;
  index: number;
  depth: number;
  /** `null`: it has nothing below. */
  open: boolean | null;
  /** Steps below it that have no row. */
  hidden: number;
  /** Shown only because something below it matches the filter. */
  way: boolean;
  /** Its place among the members of its group, from 1; `null` when it is in none. */
  number: number | null;
};
export type GroupRow = {
  kind: "group";
  key: string;
  parent: number;
  name: number;
  depth: number;
  open: boolean;
  members: readonly number[];
  hidden: number;
  /** Members that have rows of their own above it: they came before there were enough for a group. */
  loose: number;
};
export type MoreRow = { kind: "more"; key: string; group: string; depth: number; left: number; shown: number };
export type Row = StepRow | GroupRow | MoreRow;

export type Folded = {
  rows: Row[];
  /** Steps that the filter leaves, with the way to them. */
  steps: number;
  /** Steps that match the filter themselves. */
  matching: number;
  /** Of those, how many have no row. */
  folded: number;
  groups: number;
};

/**
 * What was decided and drawn, so that nothing jumps: a row that is there stays while its run goes
 * on, a group does not swallow rows, members keep their order. A new `Memory` decides anew.
 */
export type Memory = {
  open: Map<string, boolean>;
  /** Troubled steps whose way is never folded; `null` until they are chosen. */
  pinned: Set<number> | null;
  matched: Set<number>;
  /** By group: members with rows of their own. */
  loose: Map<string, Set<number>>;
  /** By group: the order in which its members are shown. */
  order: Map<string, number[]>;
  /** Whether the run is so long that finished parts fold. */
  long: boolean | null;
};

export const remember = (): Memory => ({
  open: new Map(), pinned: null, matched: new Set(), loose: new Map(), order: new Map(), long: null,
});

const GROUP_FROM = 6;
const LONG_FROM = 200;
const DEPTH = 3;
const PINNED = 50;
const SLOWEST = 5;
const PAGE = 50;
const RANK = { failed: 0, waiting: 1, running: 2, none: 3 } as const;

export type FoldInput = {
  forest: Forest;
  fold: FoldState;
  filter: Filter;
  /** The step whose way is never folded. */
  selected: number | null;
  critical: ReadonlySet<number>;
  now: number;
};

export function matches(step: Step, filter: Filter, now: number): boolean {
  if (filter.slower !== null && tookOf(step, now) <= filter.slower) return false;
  switch (filter.only) {
    case "all": return true;
    case "trouble": return troubleOf(step) === "failed";
    case "open": return isOpen(step);
    case "absorbed": return step.reason === "awaiting_agent_restart" || step.segments.some(([kind]) => kind === "absorbed");
    case "reused": return has(step, "replayed");
    default: return step.state === filter.only;
  }
}

export function folded(input: FoldInput, memory: Memory): Folded {
  return new Folding(input, memory).result();
}

/** Whether rows that were made with no step selected are the same with this one: it has a row already. */
export const stays = (rows: readonly Row[], selected: number | null): boolean =>
  selected === null || rows.some((row) => row.kind === "step" && row.index === selected);

/** For each row its place among its siblings in sight, and how many those are. */
export function places(rows: readonly Row[]): { place: number; of: number }[] {
  const found: { place: number; of: number }[] = rows.map(() => ({ place: 0, of: 0 }));
  const levels: number[][] = [];
  const close = (depth: number) => {
    while (levels.length > depth) {
      const level = levels.pop() ?? [];
      for (const [at, index] of level.entries()) found[index] = { place: at + 1, of: level.length };
    }
  };
  for (const [index, row] of rows.entries()) {
    close(row.depth + 1);
    while (levels.length <= row.depth) levels.push([]);
    levels[row.depth]?.push(index);
  }
  close(0);
  return found;
}

class Folding {
  private readonly rows: Row[] = [];
  private readonly forest: Forest;
  private readonly keep: Uint8Array;
  private readonly size: Int32Array;
  private readonly finished: Uint8Array;
  private readonly onWay = new Set<number>();
  private readonly pinned: Set<number>;
  private readonly long: boolean;
  private matching = 0;
  private groups = 0;
  private steps = 0;
  private shown = 0;

  constructor(private readonly input: FoldInput, private readonly memory: Memory) {
    const { forest } = input;
    this.forest = forest;
    const count = forest.steps.length;
    this.keep = new Uint8Array(count);
    this.size = new Int32Array(count);
    this.finished = new Uint8Array(count);
    for (const root of forest.roots) this.measure(root);
    this.pinned = this.choosePinned();
    for (const index of this.pinned) this.way(index);
    if (input.selected !== null && this.keep[input.selected]) this.way(input.selected);
    memory.long ??= this.rowsByGroupsAlone() > LONG_FROM;
    this.long = memory.long;
  }

  result(): Folded {
    this.siblings(-1, this.forest.roots, 0);
    return {
      rows: this.rows, steps: this.steps, matching: this.matching, folded: this.steps - this.shown, groups: this.groups,
    };
  }

  /** What the filter keeps, and how much is below each; children before their callers. */
  private measure(root: number): void {
    const stack = [root];
    const order: number[] = [];
    while (stack.length > 0) {
      const index = stack.pop() as number;
      order.push(index);
      for (const child of childrenOf(this.forest, index)) stack.push(child);
    }
    const all = this.input.filter.only === "all" && this.input.filter.slower === null;
    for (const index of order.reverse()) {
      const step = this.forest.steps[index] as Step;
      const matching = all || matches(step, this.input.filter, this.input.now) || this.memory.matched.has(index);
      if (matching) {
        this.matching += 1;
        if (!all) this.memory.matched.add(index);
      }
      let size = 0;
      let finished = step.state === "succeeded";
      let below = false;
      for (const child of childrenOf(this.forest, index)) {
        if (this.keep[child]) {
          size += 1 + (this.size[child] as number);
          below = true;
        }
        if (!this.finished[child] || this.input.critical.has(child)) finished = false;
      }
      if (this.input.critical.has(index)) finished = false;
      this.keep[index] = matching || below ? (matching ? 1 : 2) : 0;
      this.size[index] = size;
      this.finished[index] = finished ? 1 : 0;
      if (this.keep[index]) this.steps += 1;
    }
  }

  /** The first fifty that failed, wait or run. Later only failed and waiting ones join. */
  private choosePinned(): Set<number> {
    const { memory } = this;
    const before = memory.pinned;
    const pinned = new Set(before ?? []);
    if (pinned.size < PINNED) {
      const wanted = before === null ? RANK.running : RANK.waiting;
      const found: number[][] = [[], [], []];
      for (const step of this.forest.steps) {
        const rank = RANK[troubleOf(step)];
        if (rank <= wanted && this.keep[step.index] && !pinned.has(step.index)) found[rank]?.push(step.index);
      }
      for (const index of found.flat().slice(0, PINNED - pinned.size)) pinned.add(index);
    }
    memory.pinned = pinned;
    return pinned;
  }

  private way(index: number): void {
    this.onWay.add(index);
    for (const caller of callersOf(this.forest, index)) {
      if (this.onWay.has(caller)) return;
      this.onWay.add(caller);
    }
  }

  /** How many rows there would be with groups as the only folds, up to a few more than matter. */
  private rowsByGroupsAlone(): number {
    let rows = 0;
    const stack: (readonly number[])[] = [this.forest.roots];
    while (stack.length > 0 && rows <= LONG_FROM) {
      const kept = (stack.pop() as readonly number[]).filter((index) => this.keep[index]);
      for (const [, members] of this.byName(kept)) {
        if (members.length >= GROUP_FROM) rows += 1;
        else {
          rows += members.length;
          for (const index of members) stack.push(childrenOf(this.forest, index));
        }
      }
    }
    return rows;
  }

  private byName(indexes: readonly number[]): Map<number, number[]> {
    const names = new Map<number, number[]>();
    for (const index of indexes) {
      const name = (this.forest.steps[index] as Step).name;
      const members = names.get(name);
      if (members) members.push(index);
      else names.set(name, [index]);
    }
    return names;
  }

  private siblings(parent: number, all: readonly number[], depth: number): void {
    const kept = all.filter((index) => this.keep[index]);
    const names = this.byName(kept);
    const grouped = new Set<number>();
    for (const index of kept) {
      const name = (this.forest.steps[index] as Step).name;
      const members = names.get(name) as number[];
      if (this.input.fold.mode === "none" || members.length < GROUP_FROM) {
        this.loosen(parent, name, index);
        this.step(index, depth);
        continue;
      }
      // Rows that were there before there were enough for a group stay rows, above it.
      const loose = this.memory.loose.get(groupKey(parent, name));
      if (loose?.has(index)) this.step(index, depth);
      else if (!grouped.has(name)) {
        grouped.add(name);
        this.group(parent, name, loose ? members.filter((member) => !loose.has(member)) : members, depth, loose?.size ?? 0);
      }
    }
  }

  private loosen(parent: number, name: number, index: number): void {
    const key = groupKey(parent, name);
    let loose = this.memory.loose.get(key);
    if (!loose) this.memory.loose.set(key, (loose = new Set()));
    loose.add(index);
  }

  private step(index: number, depth: number, number: number | null = null): void {
    const below = this.size[index] as number;
    const key = stepKey(index);
    const open = below === 0 ? null : this.decide(key, index, depth);
    const row: StepRow = { kind: "step", key, index, depth, open, hidden: 0, way: this.keep[index] === 2, number };
    this.rows.push(row);
    this.shown += 1;
    const before = this.shown;
    if (open) this.siblings(index, childrenOf(this.forest, index), depth + 1);
    row.hidden = below - (this.shown - before);
  }

  private group(parent: number, name: number, members: readonly number[], depth: number, loose: number): void {
    const key = groupKey(parent, name);
    const open = this.groupOpen(key, depth);
    const row: GroupRow = { kind: "group", key, parent, name, depth, open, members, hidden: 0, loose };
    this.rows.push(row);
    this.groups += 1;
    const before = this.shown;
    const closedByReader = this.input.fold.set.get(key) === false || (this.input.fold.base === "closed" && !open);
    if (open) this.opened(key, members, depth + 1, loose);
    else if (!closedByReader) {
      // What must stay in sight shows through a closed group.
      for (const [at, index] of members.entries()) if (this.onWay.has(index)) this.step(index, depth + 1, loose + at + 1);
    }
    let total = 0;
    for (const index of members) total += 1 + (this.size[index] as number);
    row.hidden = total - (this.shown - before);
  }

  /** Troubled ones first, then the five slowest, then the rest as they were called, by fifty. */
  private opened(key: string, members: readonly number[], depth: number, loose: number): void {
    const { now } = this.input;
    let order = this.memory.order.get(key);
    if (!order) {
      const steps = members.map((index) => this.forest.steps[index] as Step);
      const troubled = steps.filter((step) => troubleOf(step) !== "none").sort((a, b) => RANK[troubleOf(a)] - RANK[troubleOf(b)] || a.index - b.index);
      const rest = steps.filter((step) => troubleOf(step) === "none");
      const slowest = [...rest].sort((a, b) => tookOf(b, now) - tookOf(a, now) || a.index - b.index).slice(0, SLOWEST);
      const slow = new Set(slowest);
      order = [...troubled, ...slowest, ...rest.filter((step) => !slow.has(step))].map((step) => step.index);
      this.memory.order.set(key, order);
    }
    const known = new Set(order);
    for (const index of members) if (!known.has(index)) order.push(index);
    const place = new Map(members.map((index, at) => [index, loose + at + 1]));
    const ordered = order.filter((index) => place.has(index));
    const first = ordered.filter((index) => troubleOf(this.forest.steps[index] as Step) !== "none").length;
    const wanted = this.input.fold.more.get(key) ?? Math.min(first, PINNED) + SLOWEST + PAGE;
    let shown = 0;
    for (const [at, index] of ordered.entries()) {
      if (at < wanted || this.onWay.has(index)) {
        this.step(index, depth, place.get(index));
        shown += 1;
      }
    }
    if (shown < ordered.length) {
      this.rows.push({ kind: "more", key: `m${key}`, group: key, depth, left: ordered.length - shown, shown: wanted });
    }
  }

  private groupOpen(key: string, depth: number): boolean {
    const { fold } = this.input;
    const said = fold.set.get(key);
    if (said !== undefined) return said;
    if (fold.base === "open") return true;
    if (fold.base === "closed") return false;
    if (typeof fold.base === "number") return depth < fold.base;
    return false;
  }

  /** Whether a step with something below is open. */
  private decide(key: string, index: number, depth: number): boolean {
    const { fold } = this.input;
    const said = fold.set.get(key);
    if (said !== undefined) return said;
    if (fold.base === "open") return true;
    if (fold.base === "closed") return false;
    if (this.wayBelow(index)) return this.note(key, true);
    if (typeof fold.base === "number") return depth < fold.base;
    if (fold.mode !== "auto") return true;
    const before = this.memory.open.get(key);
    if (before !== undefined) return before;
    return this.note(key, !(this.long && depth >= DEPTH && this.finished[index] === 1));
  }

  private note(key: string, open: boolean): boolean {
    this.memory.open.set(key, open);
    return open;
  }

  private wayBelow(index: number): boolean {
    return this.onWay.has(index) && childrenOf(this.forest, index).some((child) => this.onWay.has(child));
  }
}
