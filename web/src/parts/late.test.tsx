// @vitest-environment happy-dom
import { afterEach, expect, it, vi } from "vitest";
import { flushSync } from "react-dom";
import { type Root, createRoot } from "react-dom/client";
import { late } from "./late";
import { Panel } from "./says";

type Props = { name: string };
const code = { default: ({ name }: Props) => <p>page of {name}</p> };
let root: Root | undefined;

function drawn(Late: ReturnType<typeof late<Props>>): HTMLElement {
  const box = document.createElement("div");
  root = createRoot(box);
  flushSync(() => root?.render(<Panel what="this page"><Late name="ada" /></Panel>));
  return box;
}
afterEach(() => root?.unmount());

it("shows what is waited for, then the code as soon as it is there", async () => {
  const box = drawn(late<Props>(() => Promise.resolve(code), <p>wait</p>));
  expect(box.textContent).toBe("wait");
  // By turns of the loop, not by the clock: React's own `lazy` would wait for a timer of 300 ms.
  for (let turn = 0; turn < 50 && box.textContent === "wait"; turn++) await new Promise((done) => setImmediate(done));
  expect(box.textContent).toBe("page of ada");
});
it("shows code that was fetched before at once, and fetches it once", async () => {
  const load = vi.fn(() => Promise.resolve(code));
  const Late = late<Props>(load, <p>wait</p>);
  const first = drawn(Late);
  await vi.waitFor(() => expect(first.textContent).toBe("page of ada"));
  root?.unmount();
  expect(drawn(Late).textContent).toBe("page of ada");
  expect(load).toHaveBeenCalledTimes(1);
});
it("says that code cannot be had, and asks for it again on Retry", async () => {
  const load = vi.fn<() => Promise<typeof code>>().mockRejectedValueOnce(new Error("the code did not come")).mockResolvedValue(code);
  const box = drawn(late<Props>(load, <p>wait</p>));
  await vi.waitFor(() => expect(box.textContent).toContain("the code did not come"));
  flushSync(() => box.querySelector("button")?.click());
  await vi.waitFor(() => expect(box.textContent).toBe("page of ada"));
  expect(load).toHaveBeenCalledTimes(2);
});
