// How well a text fits what was typed: all its letters in order, better at the starts of words.
// Pure; for the palette's own entries, not for what the plane searches.

/** Higher is better; undefined: does not fit. */
export function fit(text: string, typed: string): number | undefined {
  const wanted = typed.toLowerCase().replaceAll(" ", "");
  if (wanted === "") return 0;
  const there = text.toLowerCase();
  const whole = there.indexOf(typed.trim().toLowerCase());
  if (whole >= 0) return 1000 - whole - there.length / 100 + (whole === 0 || there[whole - 1] === " " ? 500 : 0);
  let at = -1;
  let score = 0;
  for (const letter of wanted) {
    const next = there.indexOf(letter, at + 1);
    if (next < 0) return undefined;
    if (next === 0 || /[\s:._-]/.test(there[next - 1] ?? "")) score += 10;
    else if (next === at + 1) score += 5;
    else score -= next - at;
    at = next;
  }
  return score;
}

/** The entries that fit, best first; in their own order where they fit alike. */
export function best<T>(entries: readonly T[], textOf: (entry: T) => string, typed: string): T[] {
  return entries
    .map((entry, index) => ({ entry, index, score: fit(textOf(entry), typed) }))
    .filter((each): each is { entry: T; index: number; score: number } => each.score !== undefined)
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .map((each) => each.entry);
}
