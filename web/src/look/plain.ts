// Text from outside, made safe to look at: control characters, terminal sequences, characters that
// turn the direction of a line, and invisible ones become visible escapes. Changes what is shown,
// never what is copied or sent.

/** A stretch of text as it is, or an escape that stands for one character. */
export type Piece = { text: string; escape: boolean };

/** What has no look of its own, or a harmful one. Lone surrogates are found apart. */
const HIDDEN =
  "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}";
const ESCAPED = new RegExp(`[${HIDDEN}]|\\p{Cs}`, "gu");
const ESCAPED_IN_LINE = new RegExp(`[${HIDDEN}\\n\\t]|\\p{Cs}`, "gu");

const SHORT: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f" };

/** How one character is written as an escape: `\n`, `\u202e`, `\u{e0041}`. */
export function escapeOf(character: string): string {
  const short = SHORT[character];
  if (short !== undefined) return short;
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** A text of somebody else, which may be missing: what is not a text is written as what it is. */
export type Outside = string | number | boolean | null | undefined;
const textOf = (text: Outside): string => (text === null || text === undefined ? "—" : String(text));

/**
 * The text as pieces; `—` for none. Line ends and tabs stay when `lines` is set; else they are escapes too, so
 * that the text is one line.
 */
export function piecesOf(given: Outside, { lines = false } = {}): Piece[] {
  const text = textOf(given);
  const found = lines ? ESCAPED : ESCAPED_IN_LINE;
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(found)) {
    if (match.index > from) pieces.push({ text: text.slice(from, match.index), escape: false });
    pieces.push({ text: escapeOf(match[0]), escape: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), escape: false });
  return pieces;
}

/** The text with escapes in it, for titles, names and attributes. */
export function plain(text: Outside, options: { lines?: boolean } = {}): string {
  const found = options.lines ? ESCAPED : ESCAPED_IN_LINE;
  return textOf(text).replace(found, escapeOf);
}
