// @vitest-environment happy-dom
// What `strict.ts` knows of the inside of the xterm that is installed. An update that moves it
// makes the terminal break the page's content policy; this test breaks before that.
import { Terminal } from "@xterm/xterm";
import { afterEach, expect, it } from "vitest";
import { openStrict } from "./strict";

/** The place that makes cells, found by the way that `strict.ts` goes. */
type Inside = { _core?: { _renderService?: { _renderer?: { value?: { _rowFactory?: { _document: { createElement(tag: string): HTMLElement }; createRow: unknown } } } } } };
const rowsOf = (term: Terminal) => (term as unknown as Inside)._core?._renderService?._renderer?.value?._rowFactory;

let term: Terminal | undefined;
afterEach(() => {
  term?.dispose();
  document.head.replaceChildren();
  document.body.replaceChildren();
});

function opened(): Terminal {
  document.head.innerHTML = '<meta name="csp-nonce" content="made-up">';
  // xterm measures letters on a canvas, which this document does not have.
  HTMLCanvasElement.prototype.getContext = (() => ({ measureText: () => ({ width: 7 }), font: "", createLinearGradient: () => ({}), fillRect: () => {}, getImageData: () => ({ data: [0, 0, 0, 0] }) })) as never;
  window.matchMedia ??= (() => ({ matches: false, addListener: () => {}, removeListener: () => {}, addEventListener: () => {}, removeEventListener: () => {} })) as never;
  const box = document.body.appendChild(document.createElement("div"));
  term = new Terminal({ allowProposedApi: true });
  openStrict(term, box);
  return term;
}

it("cells come out of the place that is mended, and take their style without the attribute", () => {
  const rows = rowsOf(opened());
  expect(rows, "xterm keeps its row factory elsewhere: mend strict.ts").toBeDefined();
  expect(typeof rows?.createRow).toBe("function");
  const cell = rows?._document.createElement("span");
  expect(cell, "cells are not made by its _document any more: mend strict.ts").toBeDefined();
  const seen: string[] = [];
  Object.defineProperty(cell, "style", { value: { set cssText(text: string) { seen.push(text); } } });
  cell?.setAttribute("style", "color: red");
  cell?.setAttribute("class", "a");
  expect(seen).toEqual(["color: red"]);
  expect(cell?.className).toBe("a");
});

it("what is written is drawn by cells from that place", async () => {
  const term = opened();
  const rows = rowsOf(term);
  if (!rows) throw new Error("xterm keeps its row factory elsewhere: mend strict.ts");
  const made: string[] = [];
  const make = rows._document.createElement;
  rows._document.createElement = (tag) => {
    made.push(tag);
    return make(tag);
  };
  await new Promise<void>((done) => term.write("\u001b[38;2;1;2;3mexact\u001b[0m", done));
  term.refresh(0, term.rows - 1);
  await expect.poll(() => made.length, { message: "xterm draws its cells otherwise: mend strict.ts", timeout: 5_000 }).toBeGreaterThan(0);
  expect(new Set(made)).toEqual(new Set(["span"]));
});

it("every style element that opening makes has the page's nonce, and the document is as before", () => {
  const before = Object.getOwnPropertyNames(document).includes("createElement");
  const term = opened();
  const styles = [...(term.element?.querySelectorAll("style") ?? []), ...document.head.querySelectorAll("style")];
  expect(styles.length, "xterm makes its styles elsewhere: mend strict.ts").toBeGreaterThan(0);
  for (const style of styles) expect(style.nonce).toBe("made-up");
  expect(Object.getOwnPropertyNames(document).includes("createElement")).toBe(before);
});
