// Every page, full and empty: readable at three widths in both themes, without a fault, a serious
// finding of axe or sideways scrolling. Pictures of all of them are kept.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Watched, closeBrowser, open } from "./harness/browser";
import { holds } from "./harness/look";
import { Plane } from "./harness/plane";
import { type Made, World } from "./harness/world";

const PAGES = ["/ui/", "/ui/runs", "/ui/runs?v=executions", "/ui/agents", "/ui/fleet", "/ui/queues", "/ui/usage", "/ui/health"];
const SECTIONS = ["keys", "nodes", "display", "tags", "audit", "configuration", "about"].map((section) => `/ui/settings/${section}`);
const nameOf = (path: string) => path.replace("/ui/", "").replaceAll(/\W+/g, "-") || "overview";

describe("a plane with nothing in it", () => {
  let plane: Plane;
  let watched: Watched;
  beforeAll(async () => {
    plane = await Plane.start();
    watched = await open(plane.url, { key: await plane.ownerKey() });
  });
  afterAll(async () => {
    await watched?.close();
    await plane?.close();
  });
  test.each([...PAGES, ...SECTIONS, "/ui/login", "/ui/nowhere", "/ui/agents/none", "/ui/agents/none/call/fn", "/ui/fleet/nodes/none", "/ui/fleet/workers/wrk_none", "/ui/queues/none"])("%s", async (path) => {
    await holds(watched, path, `empty-${nameOf(path)}`);
    if (/none/.test(path)) watched.forgive(/404 .*none/);
    watched.clean();
  });
});

describe("a plane at work", () => {
  let plane: Plane;
  let world: World;
  let runs: Record<string, Made>;
  let watched: Watched;
  beforeAll(async () => {
    plane = await Plane.start();
    ({ world, runs } = await World.start(plane, { runs: ["done", "restarted", "timeout", "hostile", "paused", "trip"] }));
    await plane.ask("/api/v1/hold", { agent: "mail", reason: "the provider is down" });
    await plane.ask("/api/v1/execute/async/mail.send", { input: { to: "a", subject: "b" } });
    await world.say("goodbye report");
    watched = await open(plane.url, { key: await plane.ownerKey() });
  });
  afterAll(async () => {
    await watched?.close();
    await world?.close();
    await plane?.close();
    await closeBrowser();
  });
  test.each([...PAGES, "/ui/settings/keys", "/ui/settings/audit", "/ui/agents/weather", "/ui/agents/report?why=1", "/ui/agents/hotel/call/book", "/ui/agents/mail", "/ui/queues/mail?why=1"])("%s", async (path) => {
    await holds(watched, path, `full-${nameOf(path)}`);
    watched.clean();
  });
  test("hostile words stay words", async () => {
    const run = runs.hostile?.run ?? "";
    await holds(watched, `/ui/runs/${encodeURIComponent(run)}?tab=output`, "full-hostile");
    expect(await watched.page.locator("main img").count()).toBe(0);
    watched.clean();
  });
});
