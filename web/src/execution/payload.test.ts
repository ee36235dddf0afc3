import { describe, expect, it } from "vitest";
import { textOf } from "./payload";

const utf8 = (text: string) => new TextEncoder().encode(text);

describe("bytes as text", () => {
  it("leaves out a character that is cut at the end of a part", () => {
    const bytes = utf8("aé漢🚀");
    const shown = Array.from({ length: bytes.length + 1 }, (_, end) => textOf(bytes.subarray(0, end), false).text);
    expect(shown).toEqual(["", "a", "a", "aé", "aé", "aé", "aé漢", "aé漢", "aé漢", "aé漢", "aé漢🚀"]);
  });

  it("says that bytes are no text, whole or in part", () => {
    expect(textOf(new Uint8Array([0x61, 0xff, 0x62]), true)).toEqual({ text: "", utf8: false });
    expect(textOf(new Uint8Array([0x61, 0xc3, 0x28, 0x28]), false).utf8).toBe(false);
    expect(textOf(utf8("é").subarray(0, 1), true).utf8).toBe(false);
  });

  it("keeps a byte order mark and a NUL: they are what is stored", () => {
    expect(textOf(utf8("\ufeff\u0000x"), true).text).toBe("\ufeff\u0000x");
  });
});
