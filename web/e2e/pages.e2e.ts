// Every page, full and empty: readable at three widths in both themes, without a fault, a serious
// finding of axe or sideways scrolling. Pictures of all of them are kept. And every page when nothing
// of what it was told is known, or all of it is in words that it has not heard.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UNHEARD } from "@/shell/answers";
import { change, newWords, nothingKnown } from "./harness/answers";
import { type Watched, open, shot } from "./harness/browser";
import { holds } from "./harness/look";
import { Machine } from "./harness/machine";
import { Scene, after, end, walk } from "./harness/scene";
import type { Plane } from "./harness/plane";
import type { Made } from "./harness/world";

const PAGES = ["/ui/", "/ui/runs", "/ui/runs?v=executions", "/ui/agents", "/ui/fleet", "/ui/queues", "/ui/usage", "/ui/health"];
const SECTIONS = ["keys", "nodes", "display", "tags", "audit", "configuration", "about"].map((section) => `/ui/settings/${section}`);
const nameOf = (path: string) => path.replace("/ui/", "").replaceAll(/\W+/g, "-") || "overview";

describe("a plane with nothing in it", () => {
  let watched: Watched;
  beforeAll(async () => {
    ({ watched } = await Scene.begin());
  });
  afterAll(end);
  test.each([...PAGES, ...SECTIONS, "/ui/login", "/ui/nowhere", "/ui/agents/none", "/ui/agents/none/call/fn", "/ui/fleet/nodes/none", "/ui/fleet/workers/wrk_none", "/ui/queues/none"])("%s", async (path) => {
    await holds(watched, path, `empty-${nameOf(path)}`);
    if (/none/.test(path)) watched.forgive(/404 .*none/);
    watched.clean();
  });
});

describe("a plane at work", () => {
  let plane: Plane;
  let runs: Record<string, Made>;
  let worker = "";
  let watched: Watched;
  beforeAll(async () => {
    const scene = await Scene.begin({ agents: true, runs: ["done", "restarted", "timeout", "hostile", "paused", "trip"] });
    ({ plane, runs, watched } = scene);
    const edge = await Machine.start(plane, "edge-1");
    after(() => edge.close());
    await edge.online();
    worker = (await edge.spawn("steady", "sleep", ["600"])).id;
    await scene.plane.ask("/api/v1/hold", { agent: "mail", reason: "the provider is down" });
    await scene.plane.call("mail.send", { to: "a", subject: "b" });
    await scene.world.say("goodbye report");
  });
  afterAll(end);
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

  /** Every page that shows something of the plane; what is in braces is made when the tests begin. */
  const SHOWING = [
    ...PAGES, ...SECTIONS, "/ui/agents/weather", "/ui/agents/weather?why=1", "/ui/agents/weather/call/lookup", "/ui/fleet?view=table", "/ui/fleet/nodes/edge-1", "/ui/fleet/nodes/edge-1?why=1",
    "/ui/fleet/workers/{worker}", "/ui/queues/mail", "/ui/queues/mail?why=1", "/ui/usage?by=agent", "/ui/compare?a={failed}&b={restarted}", "/ui/runs/{trip}?view=tree", "/ui/runs/{trip}?view=time", "/ui/runs/{trip}?view=list",
    ...["why", "input", "output", "attempts", "logs", "notes", "events", "raw"].map((tab) => `/ui/executions/{step}?alone=1&tab=${tab}`),
  ];
  const made = (path: string) => path.replace(/\{(\w+)\}/g, (_, what: string) => (what === "worker" ? worker : what === "step" ? runs.failed?.execution : runs[what]?.run) ?? "?");
  const name = (path: string) => nameOf(path).replace(/^-|-$/g, "");

  /** What every page must be, whatever it was told. */
  async function stands(page: Page, path: string): Promise<void> {
    await walk(page, made(path));
    expect(await page.getByRole("alert").filter({ hasText: /internal_error|Cannot read|is not a function/ }).allTextContents(), "no panel is broken").toEqual([]);
    expect(await page.locator("main h1").count(), "it has its title").toBe(1);
    // One of the strings that agents say is a NaN in words.
    const text = ((await page.locator("main").textContent()) ?? "").replaceAll("9223372036854775807 NaN", "");
    expect(text, "no value of the code's own shows").not.toMatch(/undefined|NaN|\[object |Invalid Date/);
  }

  /** A page of its own whose every answer is changed, for all tests of a describe. */
  function changed(how: (told: unknown) => unknown): () => Watched {
    let mine: Watched;
    beforeAll(async () => {
      mine = await open(plane.url, { key: await plane.ownerKey() });
      await change(mine.page, how);
    });
    afterAll(() => mine?.close());
    return () => mine;
  }

  describe("with null for all that is no id, name, state or count", () => {
    const mine = changed(nothingKnown);
    test.each(SHOWING)("%s", async (path) => {
      const { page, clean } = mine();
      await stands(page, path);
      await shot(page, `nulls-${name(path)}`, false);
      for (const title of await page.locator("main .state-mark").evaluateAll((all) => all.map((each) => (each as HTMLElement).title))) expect(title, "a state without its word").not.toBe("");
      clean();
    });
  });

  describe("with words of a newer plane", () => {
    const mine = changed(newWords);
    /** Pages on which a state of what the plane knows must be seen. */
    const STATES = /^\/ui\/(runs|agents|fleet|executions)(?!.*\/call\/)/;
    test.each(SHOWING)("%s", async (path) => {
      const { page, clean } = mine();
      await stands(page, path);
      const marks = page.locator(`main .state-mark[data-state=${UNHEARD}]`);
      if (STATES.test(path)) await marks.first().waitFor({ state: "attached" });
      for (const title of await marks.evaluateAll((all) => all.map((each) => (each as HTMLElement).title))) expect(title).toContain(`other(${UNHEARD})`);
      await shot(page, `words-${name(path)}`, false);
      clean();
    });
  });
});
