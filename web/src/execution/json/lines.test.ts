import { describe, expect, it } from "vitest";
import { linesOf, rowText, rowsOf } from "./lines";

const rows = (text: string, columns: number) => {
  const lines = linesOf(text, columns);
  return Array.from({ length: rowsOf(lines) }, (_, row) => rowText(text, lines, row));
};

describe("lines of a bounded width", () => {
  it("breaks at line ends, and long lines by width", () => {
    expect(rows("ab\ncdefg\n", 3)).toEqual(["ab", "cde", "fg", ""]);
    expect(rows("", 3)).toEqual([""]);
    expect(rows("abc\nd", 3)).toEqual(["abc", "d"]);
    expect(linesOf("abcd\ne", 3).continued).toEqual([false, true, false]);
  });

  it("loses nothing, whatever the text", () => {
    const text = "αβγ🚀🚀漢字\n\n\r\nx".repeat(50);
    const lines = linesOf(text, 7);
    let joined = "";
    for (let row = 0; row < rowsOf(lines); row += 1) {
      joined += (row > 0 && !lines.continued[row] ? "\n" : "") + rowText(text, lines, row);
    }
    expect(joined).toBe(text);
  });

  it("never breaks a pair, and counts wide characters twice", () => {
    expect(rows("🚀🚀🚀", 2)).toEqual(["🚀", "🚀", "🚀"]);
    expect(rows("漢字漢", 4)).toEqual(["漢字", "漢"]);
    expect(rows("漢", 1)).toEqual(["漢"]);
  });
});
