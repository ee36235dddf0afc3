// What differs between two texts, line by line: a shortest script of removed and added lines
// (Myers), within a bound. Texts that differ in more than the bound are one block each. Pure.

export type Op = "same" | "a" | "b";
/** Lines `a` (from 0) of the first text and `b` of the second: equal, only in the first, only in the second. */
export type DiffLine = { op: Op; a: number; b: number };

export type Diff = {
  lines: DiffLine[];
  removed: number;
  added: number;
  /** The middle differs too much to be compared line by line. */
  coarse: boolean;
};

/** More differing lines than this, and the middle is one block. Bounds time and memory: D² / 2 steps. */
const EDITS_MAX = 1500;

export function diffLines(a: readonly string[], b: readonly string[], editsMax = EDITS_MAX): Diff {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const lines: DiffLine[] = [];
  for (let at = 0; at < head; at += 1) lines.push({ op: "same", a: at, b: at });
  const middle = script(a.slice(head, a.length - tail), b.slice(head, b.length - tail), editsMax);
  for (const { op, a: x, b: y } of middle.lines) lines.push({ op, a: x + head, b: y + head });
  for (let at = tail; at > 0; at -= 1) lines.push({ op: "same", a: a.length - at, b: b.length - at });
  return {
    lines,
    removed: lines.filter((line) => line.op === "a").length,
    added: lines.filter((line) => line.op === "b").length,
    coarse: middle.coarse,
  };
}

function block(a: number, b: number): DiffLine[] {
  return [
    ...Array.from({ length: a }, (_, at): DiffLine => ({ op: "a", a: at, b: 0 })),
    ...Array.from({ length: b }, (_, at): DiffLine => ({ op: "b", a, b: at })),
  ];
}

/** The furthest reach on each diagonal, one row for each number of edits, then the way back. */
function script(a: readonly string[], b: readonly string[], editsMax: number): { lines: DiffLine[]; coarse: boolean } {
  const [n, m] = [a.length, b.length];
  if (n === 0 || m === 0) return { lines: block(n, m), coarse: false };
  const limit = Math.min(n + m, editsMax);
  const rows: Int32Array[] = [];
  let reach = new Int32Array(3);
  for (let edits = 0; edits <= limit; edits += 1) {
    // Index of a diagonal `k` in a row of `edits` is `k + edits + 1`; one spare at each side.
    const next = new Int32Array(2 * edits + 3).fill(-1);
    for (let k = -edits; k <= edits; k += 2) {
      const down = edits === 0 ? 0 : at(reach, k + 1, edits - 1);
      const right = edits === 0 ? -1 : at(reach, k - 1, edits - 1);
      let x = edits === 0 ? 0 : k === -edits || (k !== edits && right < down) ? down : right + 1;
      let y = x - k;
      while (x < n && y < m && a[x] === b[y]) {
        x += 1;
        y += 1;
      }
      next[k + edits + 1] = x;
      if (x >= n && y >= m) {
        rows.push(next);
        return { lines: back(rows, n, m), coarse: false };
      }
    }
    rows.push(next);
    reach = next;
  }
  return { lines: block(n, m), coarse: true };
}

const at = (row: Int32Array, k: number, edits: number): number => row[k + edits + 1] ?? -1;

function back(rows: Int32Array[], n: number, m: number): DiffLine[] {
  const lines: DiffLine[] = [];
  let [x, y] = [n, m];
  for (let edits = rows.length - 1; edits >= 0; edits -= 1) {
    const before = edits > 0 ? (rows[edits - 1] as Int32Array) : undefined;
    const k = x - y;
    const down = before && (k === -edits || (k !== edits && at(before, k - 1, edits - 1) < at(before, k + 1, edits - 1)));
    const fromK = before ? (down ? k + 1 : k - 1) : 0;
    const fromX = before ? at(before, fromK, edits - 1) : 0;
    const fromY = fromX - fromK;
    const [startX, startY] = before ? (down ? [fromX, fromY + 1] : [fromX + 1, fromY]) : [0, 0];
    while (x > startX && y > startY) {
      x -= 1;
      y -= 1;
      lines.push({ op: "same", a: x, b: y });
    }
    if (before) lines.push(down ? { op: "b", a: fromX, b: fromY } : { op: "a", a: fromX, b: fromY });
    [x, y] = [fromX, fromY];
  }
  return lines.reverse();
}

export type Hunk = { is: "line"; line: DiffLine } | { is: "fold"; from: number; many: number };

/** Rows to show: differences with so many equal lines around them; the rest folded and counted. */
export function hunksOf(lines: readonly DiffLine[], context: number, opened: ReadonlySet<number>): Hunk[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.op === "same") return;
    for (let each = Math.max(0, index - context); each <= Math.min(lines.length - 1, index + context); each += 1) near[each] = 1;
  });
  const rows: Hunk[] = [];
  for (let index = 0; index < lines.length; ) {
    if (near[index]) {
      rows.push({ is: "line", line: lines[index] as DiffLine });
      index += 1;
      continue;
    }
    let end = index;
    while (end < lines.length && !near[end]) end += 1;
    if (end - index <= 2 || opened.has(index)) for (let each = index; each < end; each += 1) rows.push({ is: "line", line: lines[each] as DiffLine });
    else rows.push({ is: "fold", from: index, many: end - index });
    index = end;
  }
  return rows;
}
