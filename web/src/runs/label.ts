// Where the words of a bar go: behind it, before it, or nowhere; whole, or only the short part where
// the whole would be a few letters. Pure; widths are estimates, so that nothing has to be measured.

export type LabelPlace = { text: string; left: number; width: number; align: "start" | "end" };

const LETTER = 6.6;
/** Fewer pixels than these are letters without a meaning. */
const CUT_LEAST = 96;
const GAP = 4;

/** `extra`: room for what stands behind the words (a button). */
export function placeLabel(words: { full: string; brief: string }, bar: { start: number; end: number }, width: number, extra = 0): LabelPlace | null {
  if (bar.start > width || bar.end < 0) return null;
  const after = { left: bar.end, width: width - bar.end - GAP, align: "start" as const };
  const before = { left: GAP, width: bar.start - 2 * GAP, align: "end" as const };
  const needs = (text: string) => text.length * LETTER + extra;
  for (const text of [words.full, words.brief]) {
    for (const side of [after, before]) if (side.width >= needs(text)) return { text, ...side };
    // Cut, where enough is left to be understood; only the whole is ever cut.
    const roomy = after.width >= before.width ? after : before;
    if (text === words.full && roomy.width - extra >= Math.max(CUT_LEAST, needs(words.brief) - extra + 24)) return { text, ...roomy };
  }
  const roomy = after.width >= before.width ? after : before;
  return extra > 0 && roomy.width >= extra ? { text: "", ...roomy } : null;
}
