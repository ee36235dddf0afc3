// A page outlives planes: one of another version is said and offers a reload, a plane that starts
// again under the same version is not; a `reset` in the stream is healed by asking again.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { type Watched, shot } from "./harness/browser";
import { linked } from "./harness/live";
import { settled } from "./harness/look";
import type { Plane } from "./harness/plane";
import { Scene, end, visit, walk } from "./harness/scene";
import { until } from "./harness/waiting";

let plane: Plane;
beforeAll(async () => {
  ({ plane } = await Scene.begin({ page: false }));
});
afterAll(end);

/** Frames of the stream as the page shall get them, in place of the plane's. */
type Stand = { send(name: string, data: object, id?: string): void; asked: string[] };

/** A page whose stream the test speaks: every answer else is the plane's own. */
const spoken = (look: (watched: Watched, stand: Stand) => Promise<void>) => visit(plane, async (watched) => {
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
  await look(watched, stand);
}, { owner: true });

const tick = (version: string, started: string) => ({ at: new Date().toISOString(), version, started, position: "1" });
const banner = (page: Page) => page.getByText(/The plane is now version/);

test("another version is said with both names, and reloading takes it", async () => {
  await spoken(async ({ page }, stand) => {
    await walk(page, "/ui/");
    const own = (await plane.ask<{ version: string }>("/api/v1/health")).version;
    stand.send("tick", tick(own, "2026-01-01T00:00:00Z"));
    await linked(page);
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
    await linked(page);
    expect(await banner(page).count()).toBe(0);
  });
});

test("a plane that starts again under the same version says nothing, and goes on", async () => {
  await visit(plane, async ({ page }) => {
    await walk(page, "/ui/health");
    await linked(page);
    await plane.kill9();
    await linked(page, ["reconnecting", "offline"]);
    await plane.again();
    await linked(page, ["live", "resynced"], 30_000);
    expect(await banner(page).count()).toBe(0);
  }, { owner: true, wanted: /./ });
});

test.each(["reset", "gap"])("a %s frame: what is on screen is asked for again, and it is said", async (name) => {
  await spoken(async ({ page }, stand) => {
    await walk(page, "/ui/queues");
    stand.send("tick", tick("0.0.0", "2026-01-01T00:00:00Z"));
    await linked(page);
    const before = stand.asked.filter((path) => path === "/api/v1/queues").length;
    stand.send(name, { from: "1" }, "2");
    await linked(page, ["resynced"]);
    expect(await page.locator("[data-live=resynced]").first().textContent()).toContain("Resynced after a gap");
    await until("the queues were asked for again", () => stand.asked.filter((path) => path === "/api/v1/queues").length > before);
  });
});
