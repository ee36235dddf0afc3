// Nothing jumps: while hundreds of events a second come, the layout does not shift at all, and the
// reader's scroll, focus, selection and open menu stay. `MUSTER_CALM_SECONDS` makes each look longer.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import type { Watched } from "./harness/browser";
import { readerAt, shiftsFrom } from "./harness/calm";
import { linked } from "./harness/live";
import type { Plane } from "./harness/plane";
import { card, grid, openRun, panel, row, rows, stated, stepOf, stepsOf } from "./harness/run-page";
import { Scene, after, end, walk } from "./harness/scene";
import { until } from "./harness/waiting";
import type { Made, World } from "./harness/world";

const SECONDS = Number(process.env.MUSTER_CALM_SECONDS ?? 12);
/** Fewer events than this were no test; the plane and its agents share the machine with the browser. */
const LEAST_PER_SECOND = 30;
let plane: Plane;
let world: World;
let grows: Made;
let watched: Watched;
let page: Page;
let ending = false;
const calls: Promise<void>[] = [];

/** How many events the plane has stored so far. */
const told = () => plane.metric("muster_event_sequence");

beforeAll(async () => {
  ({ plane, world, watched, page } = await Scene.begin({ agents: ["bulk", "weather", "trip"], page: { height: 600 } }));
  for (let n = 0; n < 30; n += 1) await plane.ask("/api/v1/execute/async/bulk.leaf", { input: { n } });
  grows = await world.make("growing 100000 6");
  await until("forty steps", async () => (await stepsOf(plane, grows.run)).length > 40);
  after(async () => {
    ending = true;
    await Promise.all(calls);
  });
  // Runs of their own too: new ones, and ends, some of them failed.
  for (let lane = 0; lane < 2; lane += 1) {
    calls.push((async () => {
      for (let n = lane; !ending; n += 2) {
        await fetch(`${plane.url}/api/v1/execute/bulk.leaf`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ input: { n: n % 400 } }) }).then((answer) => answer.arrayBuffer(), () => undefined);
      }
    })());
  }
});
afterAll(end);

/** Watches the page for a while full of events; nothing of its layout or of its reader may move. */
async function stays(what: string, scroller: string, seconds = SECONDS): Promise<void> {
  await linked(page);
  const before = await readerAt(page, scroller);
  const shifts = await shiftsFrom(page);
  const began = performance.now();
  const from = await told();
  await until("the time is over", () => performance.now() - began > seconds * 1000, seconds * 1000 + 5_000);
  const rate = (await told() - from) / ((performance.now() - began) / 1000);
  const moved = await shifts();
  console.info(`${what}: ${Math.round(rate)} events/s over ${seconds} s, ${moved.length} shifts`);
  expect(moved, what).toEqual([]);
  expect(await readerAt(page, scroller), what).toEqual(before);
  expect(rate, "a stream worth the name").toBeGreaterThan(LEAST_PER_SECOND);
  watched.clean();
}

describe("with a stream of events", () => {
  test("the overview stays where its reader is", async () => {
    await walk(page, "/ui/");
    await until("work is under way", async () => (await page.getByText(/\/min/).count()) > 0);
    await page.locator("main section a").first().focus();
    await page.evaluate(() => scrollTo(0, 40));
    await stays("overview", "main");
  });

  test("the list of runs: scroll, active row, selection and an open filter", async () => {
    await walk(page, "/ui/runs?t=all");
    await page.locator(".list-row").first().waitFor();
    for (const key of ["j", "j", "x", "j", "x"]) await page.keyboard.press(key);
    await page.getByRole("region", { name: "Selected" }).getByText("2 selected").waitFor();
    await page.locator(".list-box").evaluate((box) => { box.scrollTop = 120; });
    await page.getByRole("button", { name: /^state/ }).click();
    await page.getByRole("dialog").first().waitFor();
    await stays("runs", ".list-box");
    expect(await page.locator(".new-bar").textContent(), "what is new waits behind the bar").toMatch(/[\d,]+ new/);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test("the graph of a run: each card that was there, the window on it, and an open menu", async () => {
    // One lane: it must not end while it is watched, and stay below the number of cards that are drawn.
    const made = await world.make("growing 290 1");
    const step = await stepOf(plane, made.run, "a call", (each) => each.name === "bulk.leaf");
    await openRun(page, made.run, `view=tree&fold=none&step=${step.id}`);
    await panel(page).getByRole("heading", { level: 2 }).waitFor();
    await card(page, step.id).waitFor();
    await page.keyboard.press(".");
    await page.getByRole("dialog").first().waitFor();
    const placed = () => page.evaluate(() => Object.fromEntries([...document.querySelectorAll<HTMLElement>(".react-flow__node")].map((node) => [node.dataset.id ?? "", node.style.transform])));
    const seen = () => page.locator(".react-flow__viewport").evaluate((view) => (view as HTMLElement).style.transform);
    const [cards, view, steps] = [await placed(), await seen(), (await stated(page)).steps];
    expect(Object.keys(cards).length).toBeGreaterThan(1);
    await stays("graph", ".run-graph", 8);
    expect((await stated(page)).steps, "it grew meanwhile").toBeGreaterThan(steps);
    expect(await seen(), "what is in sight").toBe(view);
    const now = await placed();
    expect(Object.fromEntries(Object.keys(cards).map((id) => [id, now[id]])), "cards that were there").toEqual(cards);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  test("the list of a run: scroll, selected step, open panel", async () => {
    const step = await stepOf(plane, grows.run, "a call", (each) => each.name === "bulk.leaf" && each.state === "succeeded");
    await openRun(page, grows.run, `view=list&fold=none&step=${step.id}`);
    await panel(page).getByRole("heading", { level: 2 }).waitFor();
    await rows(page).first().waitFor();
    await until("its steps are read", async () => (await page.getByText(/reading the steps/).count()) === 0);
    await grid(page).focus();
    await grid(page).evaluate((box) => { box.scrollTop = 200; });
    await row(page, step.id).waitFor({ state: "attached" }).catch(() => undefined);
    const before = (await stated(page)).steps;
    await stays("run", "[role=treegrid]");
    expect((await stated(page)).steps, "it grew meanwhile").toBeGreaterThan(before);
  });
});
