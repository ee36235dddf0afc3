// A page outlives planes: one of another version is said and offers a reload, a plane that starts
// again under the same version is not; a `reset` in the stream is healed by asking again.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { type Watched, closeBrowser, open, shot } from "./harness/browser";
import { settled } from "./harness/look";
import { Plane } from "./harness/plane";
import { until } from "./harness/waiting";

let plane: Plane;
beforeAll(async () => {
  plane = await Plane.start();
});
afterAll(async () => {
  await closeBrowser();
  await plane?.close();
});

/** Frames of the stream as the page shall get them, in place of the plane's. */
type Stand = { send(name: string, data: object, id?: string): void; asked: string[] };

/** A page whose stream the test speaks: every answer else is the plane's own. */
async function spoken<T>(look: (watched: Watched, stand: Stand) => Promise<T>): Promise<T> {
  const watched = await open(plane.url, { key: await plane.ownerKey() });
  const { page, context } = watched;
  const asked: string[] = [];
  // Without a shared worker there is one stream in this page, and it is this one.
  await context.addInitScript(() => {
    delete (globalThis as { SharedWorker?: unknown }).SharedWorker;
    const sources: EventTarget[] = [];
    class Stood extends EventTarget {
      constructor(readonly url: string) {
        super();
        sources.push(this);
        setTimeout(() => this.dispatchEvent(new Event("open")));
      }
      close(): void {
        sources.splice(sources.indexOf(this), 1);
      }
    }
    (globalThis as { EventSource: unknown }).EventSource = Stood;
    (globalThis as unknown as { say: unknown }).say = (name: string, data: string, id: string) => {
      for (const source of sources) source.dispatchEvent(new MessageEvent(name, { data, lastEventId: id }));
    };
  });
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  const stand: Stand = {
    asked,
    send: (name, data, id = "") => void page.evaluate(([name, data, id]) => (window as unknown as { say(name: string, data: string, id: string): void }).say(name, data, id), [name, JSON.stringify(data), id] as const),
  };
  try {
    const seen = await look(watched, stand);
    watched.clean();
    return seen;
  } finally {
    await watched.close();
  }
}

const tick = (version: string, started: string) => ({ at: new Date().toISOString(), version, started, position: "1" });
const banner = (page: Page) => page.getByText(/The plane is now version/);

test("another version is said with both names, and reloading takes it", async () => {
  await spoken(async ({ page }, stand) => {
    await page.goto("/ui/");
    await settled(page);
    const own = (await plane.ask<{ version: string }>("/api/v1/health")).version;
    stand.send("tick", tick(own, "2026-01-01T00:00:00Z"));
    await page.locator("[data-live=live]").first().waitFor();
    // The same plane, started again: nothing to say.
    stand.send("tick", tick(own, "2026-01-02T00:00:00Z"));
    stand.send("tick", tick("99.0.0", "2026-01-02T00:00:00Z"));
    await banner(page).waitFor();
    expect(await banner(page).textContent()).toContain(`version 99.0.0; this page is from ${own}`);
    await shot(page, "version-changed", false);
    // It stays over the pages, and is there for the keyboard.
    await page.getByRole("link", { name: /Runs/ }).first().click();
    await banner(page).waitFor();
    const loaded = page.waitForEvent("load");
    await page.getByRole("button", { name: "Reload" }).click();
    await loaded;
    await settled(page);
    stand.send("tick", tick("99.0.0", "2026-01-02T00:00:00Z"));
    await page.locator("[data-live=live]").first().waitFor();
    expect(await banner(page).count()).toBe(0);
  });
});

test("a plane that starts again under the same version says nothing, and goes on", async () => {
  const watched = await open(plane.url, { key: await plane.ownerKey() });
  try {
    const { page } = watched;
    await page.goto("/ui/health");
    await settled(page);
    await page.locator("[data-live=live]").first().waitFor();
    await plane.kill9();
    await page.locator("[data-live=reconnecting], [data-live=offline]").first().waitFor();
    await plane.again();
    await page.locator("[data-live=live], [data-live=resynced]").first().waitFor({ timeout: 30_000 });
    expect(await banner(page).count()).toBe(0);
    watched.forgive();
  } finally {
    await watched.close();
  }
});

test.each(["reset", "gap"])("a %s frame: what is on screen is asked for again, and it is said", async (name) => {
  await spoken(async ({ page }, stand) => {
    await page.goto("/ui/queues");
    await settled(page);
    stand.send("tick", tick("0.0.0", "2026-01-01T00:00:00Z"));
    await page.locator("[data-live=live]").first().waitFor();
    const before = stand.asked.filter((path) => path === "/api/v1/queues").length;
    stand.send(name, { from: "1" }, "2");
    await page.locator("[data-live=resynced]").first().waitFor();
    expect(await page.locator("[data-live=resynced]").first().textContent()).toContain("Resynced after a gap");
    await until("the queues were asked for again", () => stand.asked.filter((path) => path === "/api/v1/queues").length > before);
  });
});
