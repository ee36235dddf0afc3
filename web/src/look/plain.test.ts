import { describe, expect, it } from "vitest";
import { piecesOf, plain } from "./plain";

describe("text from outside", () => {
  it("shows terminal sequences and control characters as escapes", () => {
    expect(plain("\u001b[31mred\u0007\u0000")).toBe("\\u001b[31mred\\u0007\\u0000");
    expect(plain("a\u0085b\u009bc\u007f")).toBe("a\\u0085b\\u009bc\\u007f");
  });

  it("shows characters that turn the direction, and invisible ones", () => {
    expect(plain("user\u202etxt.exe")).toBe("user\\u202etxt.exe");
    expect(plain("\u2066a\u2069\u200b\ufeff\u2028")).toBe("\\u2066a\\u2069\\u200b\\ufeff\\u2028");
    expect(plain("\u{e0041}")).toBe("\\u{e0041}");
  });

  it("shows half of a pair, and leaves whole ones alone", () => {
    expect(plain("\ud800x")).toBe("\\ud800x");
    expect(plain("x\udfff")).toBe("x\\udfff");
    expect(plain("👩‍🚀 é नि ‏".trim())).toBe("👩‍🚀 é नि \\u200f");
  });

  it("keeps lines where lines are meant, and makes one line elsewhere", () => {
    expect(plain("a\nb\tc\r", { lines: true })).toBe("a\nb\tc\\r");
    expect(plain("a\nb\tc\r")).toBe("a\\nb\\tc\\r");
  });

  it("keeps all of the text, in order", () => {
    expect(piecesOf("a\u0001b")).toEqual([
      { text: "a", escape: false },
      { text: "\\u0001", escape: true },
      { text: "b", escape: false },
    ]);
    expect(piecesOf("")).toEqual([]);
    expect(piecesOf("plain")).toEqual([{ text: "plain", escape: false }]);
  });
});

it("takes what is missing, and says so", () => {
  expect(plain(null)).toBe("—");
  expect(plain(undefined)).toBe("—");
  expect(piecesOf(null)).toEqual([{ text: "—", escape: false }]);
  expect(plain(7)).toBe("7");
});
