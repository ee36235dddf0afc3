// Makes xterm fit the page's content policy. It writes `<style>` elements, which need the page's
// nonce, and gives cells their exact colours with `setAttribute("style", …)`, which the policy
// forbids and the style object does not. Knows the inside of the one version that is installed.
import type { Terminal } from "@xterm/xterm";

const nonceNow = () => document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")?.content ?? "";

/** Opens it while every `<style>` that is made gets the page's nonce, then mends its cells. */
export function openStrict(term: Terminal, box: HTMLElement): void {
  const nonce = nonceNow();
  const create = document.createElement;
  document.createElement = ((tag: string, options?: ElementCreationOptions) => {
    const element = create.call(document, tag, options);
    if (tag === "style") element.nonce = nonce;
    return element;
  }) as typeof document.createElement;
  try {
    term.open(box);
  } finally {
    // The own property goes; the prototype's is there again.
    Reflect.deleteProperty(document, "createElement");
  }
  mendCells(term);
}

function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}

type Maker = { createElement(tag: string): HTMLElement };
type Inside = { _core?: { _renderService?: { _renderer?: { value?: { _rowFactory?: { _document: Maker } } } } } };

/** Cells come out of one place; the elements that it makes take their style in the allowed way. */
function mendCells(term: Terminal): void {
  const rows = (term as unknown as Inside)._core?._renderService?._renderer?.value?._rowFactory;
  if (!rows) return;
  rows._document = {
    createElement(tag) {
      const element = document.createElement(tag);
      element.setAttribute = setAttribute;
      return element;
    },
  };
}
