// Makes xterm fit the page's content policy. It writes `<style>` elements, which need the page's
// nonce, and gives cells their exact colours with `setAttribute("style", …)`, which the policy
// forbids and the style object does not.

const nonceNow = () => document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")?.content ?? "";

function setAttribute(this: HTMLElement, name: string, value: string): void {
  if (name === "style") this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
}

function made(tag: string, element: HTMLElement, nonce: string): HTMLElement {
  if (tag === "style") element.nonce = nonce;
  else if (tag === "span") element.setAttribute = setAttribute;
  return element;
}

/** The document, as xterm gets it: what it makes fits the policy. */
export function strictDocument(): Document {
  const nonce = nonceNow();
  return new Proxy(document, {
    get(target, key) {
      if (key === "createElement") return (tag: string) => made(tag, target.createElement(tag), nonce);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value as (...given: unknown[]) => unknown).bind(target) : value;
    },
  });
}

/** Runs `open()`: one part of xterm takes the page's own document, so that is wrapped for the moment. */
export function withNonce(open: () => void): void {
  const nonce = nonceNow();
  const create = document.createElement;
  document.createElement = ((tag: string, options?: ElementCreationOptions) =>
    made(tag, create.call(document, tag, options), nonce)) as typeof document.createElement;
  try {
    open();
  } finally {
    // The own property goes; the prototype's is there again.
    Reflect.deleteProperty(document, "createElement");
  }
}
