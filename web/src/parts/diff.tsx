// The difference of two payloads on screen, line by line, with equal stretches folded. Says when
// they are equal, when one is missing, and when they are too large to be compared here.
import { type ReactNode, useMemo, useState } from "react";
import { canonicalLines } from "@/execution/json/canonical";
import { count } from "@/look/format";
import { type DiffLine, type Hunk, diffLines, hunksOf } from "./diff-lines";
import { Plain } from "./plain";
import { Window } from "./window";

/** Together more characters than this are not compared in a page. */
const TEXT_MAX = 1024 * 1024;
const LINES_MAX = 40_000;
/** A longer line is cut on screen; it is compared whole. */
const LINE_SHOWN = 2_000;

export type Side = {
  /** What it is called: `A`, `B`, a run. */
  name: ReactNode;
  /** Its text; `null` when there is none, with the reason. */
  text: string | null;
  none?: string;
};

/** `a` and `b` are JSON or any text; JSON is compared in its canonical form. */
export function TextDiff({ a, b, label }: { a: Side; b: Side; label: string }) {
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const found = useMemo(() => compared(a.text, b.text), [a.text, b.text]);
  const rows = useMemo(() => (found.is === "different" ? hunksOf(found.diff.lines, 3, opened) : []), [found, opened]);
  if (a.text === null || b.text === null) {
    const [missing, there] = a.text === null ? [a, b] : [b, a];
    return (
      <p className="p-2 text-text-2">
        {a.text === null && b.text === null ? <>Neither has one: <Plain text={a.none ?? b.none ?? "none"} />.</> : <>{missing.name} has none: <Plain text={missing.none ?? "none"} />. {there.name} has {count(there.text?.length ?? 0)} characters.</>}
      </p>
    );
  }
  if (found.is === "equal") return <p className="p-2 text-text-2">{label}: equal{found.bytes ? "" : ", but for spaces and the order of keys"}.</p>;
  if (found.is === "large") {
    return <p className="p-2 text-text-2">Too large to compare here: {count(a.text.length)} and {count(b.text.length)} characters. Download both and use <code>diff</code>.</p>;
  }
  const { diff, left, right } = found;
  const width = String(Math.max(left.length, right.length)).length;
  return (
    <section aria-label={label}>
      <p className="flex flex-wrap gap-3 px-2 py-1 text-xs text-text-2">
        <span><span className="text-fail">− {count(diff.removed)}</span> only in {a.name}</span>
        <span><span className="text-ok">+ {count(diff.added)}</span> only in {b.name}</span>
        {diff.coarse && <span className="text-wait">they have too little in common to be paired line by line</span>}
      </p>
      <Window label={label} rows={rows.length} height={18} className={`border-y border-border font-mono text-xs ${rows.length > 22 ? "h-[396px]" : ""}`}
        row={(index) => <Row row={rows[index] as Hunk} left={left} right={right} width={width} open={(from) => setOpened(new Set([...opened, from]))} />} />
    </section>
  );
}

type Compared =
  | { is: "equal"; bytes: boolean }
  | { is: "large" }
  | { is: "different"; diff: ReturnType<typeof diffLines>; left: string[]; right: string[] };

function compared(a: string | null, b: string | null): Compared {
  if (a === null || b === null) return { is: "equal", bytes: false };
  if (a === b) return { is: "equal", bytes: true };
  if (a.length + b.length > TEXT_MAX) return { is: "large" };
  const [left, right] = [canonicalLines(a), canonicalLines(b)];
  if (left.length + right.length > LINES_MAX) return { is: "large" };
  const diff = diffLines(left, right);
  return diff.added + diff.removed === 0 ? { is: "equal", bytes: false } : { is: "different", diff, left, right };
}

const LOOKS = {
  same: { sign: " ", says: "", style: "" },
  a: { sign: "−", says: "only in the first: ", style: "bg-tint-fail" },
  b: { sign: "+", says: "only in the second: ", style: "bg-tint-ok" },
} as const;

function Row({ row, left, right, width, open }: { row: Hunk; left: string[]; right: string[]; width: number; open(from: number): void }) {
  if (row.is === "fold") {
    return (
      <button type="button" className="h-[18px] w-full bg-sunken px-2 text-left text-text-2 hover:underline" onClick={() => open(row.from)}>
        ⋯ {count(row.many)} equal lines
      </button>
    );
  }
  const { op, a, b } = row.line as DiffLine;
  const text = (op === "b" ? right[b] : left[a]) ?? "";
  const number = (n: number, shown: boolean) => (shown ? String(n + 1) : "").padStart(width);
  return (
    <pre className={`flex h-[18px] whitespace-pre ${LOOKS[op].style}`}>
      <span aria-hidden className="px-1 text-text-3 select-none">{number(a, op !== "b")} {number(b, op !== "a")}</span>
      <span aria-hidden className="px-1 select-none">{LOOKS[op].sign}</span>
      {LOOKS[op].says && <span className="visually-hidden">{LOOKS[op].says}</span>}
      <Plain text={text.slice(0, LINE_SHOWN)} />
      {text.length > LINE_SHOWN && <span className="text-text-3"> … {count(text.length)} characters</span>}
    </pre>
  );
}
