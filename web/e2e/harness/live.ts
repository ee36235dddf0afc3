// The link of a page to its plane, as the page shows it.
import type { Locator, Page } from "playwright-core";

export type Link = "live" | "paused" | "reconnecting" | "offline" | "resynced";

/** The indicator at the top. */
export const indicator = (page: Page): Locator => page.locator("[data-live]").first();

/** Waits until the page says that its link is one of these; `live` unless told. */
export async function linked(page: Page, states: Link[] = ["live"], within?: number): Promise<void> {
  await page.locator(states.map((state) => `[data-live=${state}]`).join(", ")).first().waitFor({ timeout: within });
}

/** Every state that the page shows, in its order. */
export const marks = (page: Page): Promise<string[]> =>
  page.locator("main").locator(".state-mark[data-state]").evaluateAll((all) => all.map((each) => (each as HTMLElement).dataset.state ?? ""));
