// What every page must be, whatever it shows: no sideways scrolling at any width, nothing serious
// in axe in either theme, no faults, and pictures to be looked at after the run.
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { type Theme, type Watched, WIDTHS, accessibility, shot } from "./browser";
import { until } from "./waiting";

/** Waits until the page has its title and nothing of it is loading any more. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main h1, main form, main [role=status]").first().waitFor();
  await until(`${page.url()} has loaded`, async () => (await page.locator("[role=status][aria-label^=loading]").count()) === 0);
}

/** Two frames: what measures itself has measured. */
export const measured = (page: Page): Promise<unknown> => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

/** Elements that stick out of the page at the right, one a line; tables may scroll inside themselves. */
export function sideways(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const clipped = (element: Element | null): boolean =>
      element !== null && element !== document.documentElement && (getComputedStyle(element).overflowX !== "visible" || clipped(element.parentElement));
    return [...document.querySelectorAll("body *")]
      .filter((each) => each.getBoundingClientRect().right > width + 1 && !clipped(each.parentElement))
      .slice(0, 5)
      .map((each) => `${each.tagName.toLowerCase()}.${each.className}: ${(each.textContent ?? "").slice(0, 60)}`)
      .concat(`the page is ${document.documentElement.scrollWidth} px wide in ${width}`);
  });
}

/** States that are not said in full: each has a word to read, a shape, and a title that begins with the word. */
export function halfSaid(page: Page): Promise<string[]> {
  return page.evaluate(() => [...document.querySelectorAll<HTMLElement>(".state-mark")].flatMap((mark) => {
    const drawn = mark.querySelector("svg.mark")?.childElementCount ?? 0;
    const word = (mark.textContent ?? "").replace(/^\?/, "").trim() || (mark.querySelector("svg[role=img]")?.getAttribute("aria-label") ?? "");
    const lacks = [drawn === 0 && "shape", word === "" && "word", !mark.title.startsWith(word.split(" · ")[0] ?? "?") && "title"].filter(Boolean);
    return lacks.length > 0 ? [`a state without ${lacks.join(", ")}: ${mark.outerHTML.slice(0, 300)}`] : [];
  }));
}

/** Goes to a page and holds it against all that every page must be, in both themes and at three widths. */
export async function holds({ page }: Watched, path: string, name: string): Promise<void> {
  const found: string[] = [];
  await page.setViewportSize({ width: WIDTHS.desktop, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(path);
  await settled(page);
  const each: [Theme, keyof typeof WIDTHS][] = [["light", "desktop"], ["dark", "laptop"], ["light", "laptop"], ["dark", "desktop"], ["light", "phone"], ["dark", "phone"]];
  // The hostile strings of the demonstration world set it, where one of them is run.
  if (await page.evaluate(() => "__canary" in window)) found.push("a string from outside was run");
  found.push(...await halfSaid(page));
  for (const [theme, size] of each) {
    await page.setViewportSize({ width: WIDTHS[size], height: size === "phone" ? 844 : 900 });
    await page.emulateMedia({ colorScheme: theme });
    await measured(page);
    for (const each of await sideways(page)) found.push(`${size} ${theme}: ${each}`);
    if (size === "laptop" ? theme === "dark" : size === "desktop" ? theme === "light" : true) await shot(page, `${name}-${size}-${theme}`);
    if ((size === "desktop" && theme === "light") || (size === "phone" && theme === "dark")) {
      for (const each of await accessibility(page)) found.push(`${size} ${theme}: ${each}`);
    }
  }
  await page.setViewportSize({ width: WIDTHS.desktop, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
  expect(await page.locator("h1").count(), `${path} has one title`).toBe(1);
  expect(found, path).toEqual([]);
}
