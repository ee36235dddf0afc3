// Somebody without a mouse: moves by Tab, presses, types, and always sees where the focus is.
import type { Page } from "playwright-core";
import { until } from "./waiting";

/** What has the focus, as it is called: its name, else its text. Empty: nothing has it. */
export const focused = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const { activeElement: at } = document;
    if (!at || at === document.body) return "";
    const labelled = (at as HTMLInputElement).labels?.[0]?.textContent;
    return (at.getAttribute("aria-label") ?? labelled ?? at.textContent ?? "").replace(/\s+/g, " ").trim() || at.tagName;
  });

/** Whether one can see what has the focus. */
const seen = (page: Page): Promise<boolean> =>
  page.evaluate(() => {
    const { activeElement: at } = document;
    if (!at || at === document.body) return true;
    const look = getComputedStyle(at);
    return at.matches(":focus-visible") && ((look.outlineStyle !== "none" && Number.parseFloat(look.outlineWidth) >= 1) || look.boxShadow !== "none");
  });

/** Tabs on until that has the focus; fails where the focus cannot be seen on the way. */
export async function tabTo(page: Page, name: RegExp, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
  const passed: string[] = [];
  for (let step = 0; step < 150; step += 1) {
    await page.keyboard.press(key);
    const at = await focused(page);
    if (at !== "" && !(await seen(page))) throw new Error(`the focus cannot be seen on "${at}"`);
    if (name.test(at)) return;
    passed.push(at.slice(0, 30));
  }
  throw new Error(`no ${name} is reached by ${key}: ${passed.slice(0, 60).join(" | ")}`);
}

/** In a layer that has opened: goes to its verb once it can be pressed, and presses it. */
export async function confirm(page: Page, verb: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  const button = dialog.getByRole("button", { name: verb, exact: true });
  await until(`${verb} can be pressed`, () => button.isEnabled());
  await tabTo(page, new RegExp(`^${verb}$`));
  await page.keyboard.press("Enter");
}

/** What must be typed to go on, in a layer that wants it, and Enter. */
export async function typeName(page: Page, name: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/cannot be undone/).waitFor();
  await tabTo(page, /^Type /);
  await page.keyboard.type(name);
  const sends = dialog.locator("button[type=submit]");
  await until("it can be sent", () => sends.isEnabled());
  await page.keyboard.press("Enter");
}

/** Something on the page has the focus: not the document, not nothing. */
export async function keepsFocus(page: Page, after: string): Promise<void> {
  await until(`something has the focus after ${after}`, async () => (await focused(page)) !== "", 10_000);
}
