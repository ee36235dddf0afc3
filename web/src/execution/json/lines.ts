// Text in lines of a bounded width, as offsets: what a window of rows of equal height needs. A
// line that is longer is continued on the next row. Copies nothing.

export type Lines = {
  /** Where each row begins; one more at the end. */
  starts: number[];
  /** Whether a row goes on with the line before it. */
  continued: boolean[];
};

/** `columns` is the width in characters; wide ones (CJK, emoji) count twice. */
export function linesOf(text: string, columns: number): Lines {
  const starts: number[] = [0];
  const continued: boolean[] = [false];
  let width = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x0a) {
      starts.push(at + 1);
      continued.push(false);
      width = 0;
      continue;
    }
    const low = code >= 0xdc00 && code <= 0xdfff && at > 0 && isHigh(text.charCodeAt(at - 1));
    const wide = code >= 0x1100 && !low ? 2 : low ? 0 : 1;
    if (width + wide > columns && width > 0 && !low) {
      starts.push(at);
      continued.push(true);
      width = 0;
    }
    width += wide;
  }
  starts.push(text.length);
  return { starts, continued };
}

const isHigh = (code: number) => code >= 0xd800 && code <= 0xdbff;

/** How many rows there are. */
export const rowsOf = (lines: Lines): number => lines.continued.length;

/** One row, without its line end. */
export function rowText(text: string, lines: Lines, row: number): string {
  const from = lines.starts[row] ?? 0;
  let to = lines.starts[row + 1] ?? text.length;
  if (to > from && text.charCodeAt(to - 1) === 0x0a) to -= 1;
  return text.slice(from, to);
}
