// Acts from the outside: the layer in which they are confirmed, and what the page really sent.
import type { Locator, Page } from "playwright-core";
import { until } from "./waiting";

/** The layer that is open: a popover or a dialog. */
export const dialog = (page: Page): Locator => page.getByRole("dialog");

/** Requests that change something and match, from now on; questions of what would be are none. */
export function changes(page: Page, wanted: RegExp = /./): string[] {
  const sent: string[] = [];
  page.on("request", (request) => {
    if (request.method() !== "GET" && !request.url().includes("dry_run") && wanted.test(request.url())) sent.push(new URL(request.url()).pathname);
  });
  return sent;
}

/** Waits until a button of the open layer can be pressed: its consequence is there, its name typed. */
export async function ready(page: Page, verb: string | RegExp): Promise<Locator> {
  const button = dialog(page).getByRole("button", typeof verb === "string" ? { name: verb, exact: true } : { name: verb });
  await until(`${String(verb)} can be pressed`, () => button.isEnabled());
  return button;
}
