// Runs of 2,000 and of 20,000 steps out of a large store: they open, scroll and select like one of
// 200. Each is within its budget, or within a few times what the small one takes in the same run of
// the test; the numbers that were measured are printed.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { type Watched, closeBrowser, open, shot } from "./harness/browser";
import { LARGE, inProportion, largeStore } from "./harness/large";
import { Plane } from "./harness/plane";
import { grid, look, openRun, panel, rows, stated } from "./harness/run-page";
import { until } from "./harness/waiting";

const SIZES = [LARGE.small, ...LARGE.runs];
let plane: Plane;
const found: Record<number, string> = {};
const figures: string[] = [];

beforeAll(async () => {
  plane = await Plane.start({ data: await largeStore() });
  type Found = { runs: { run_id: string; executions: number }[]; next_cursor?: string };
  let cursor = "";
  do {
    const page = await plane.ask<Found>(`/api/v1/runs?limit=1000${cursor && `&cursor=${cursor}`}`);
    for (const run of page.runs) for (const steps of SIZES) if (run.executions >= steps && run.executions < steps * 1.2) found[steps] ??= run.run_id;
    cursor = page.next_cursor ?? "";
  } while (cursor && Object.keys(found).length < SIZES.length);
});
afterAll(async () => {
  console.info(figures.join("\n"));
  await closeBrowser();
  await plane?.close();
});

async function on<T>(look: (watched: Watched) => Promise<T>): Promise<T> {
  const watched = await open(plane.url);
  try {
    // What is on the way is loaded before anything is measured.
    await watched.page.goto("/ui/runs");
    await watched.page.locator("[role=row] a").first().waitFor();
    const seen = await look(watched);
    watched.clean();
    return seen;
  } finally {
    await watched.close();
  }
}

/** From a key until what it leads to is painted, measured in the page. */
async function keyToPaint(page: Page, key: string, there: string): Promise<number> {
  await page.evaluate((selector) => {
    const kept = window as unknown as { painted: Promise<number> };
    kept.painted = new Promise((resolve) => {
      let from = 0;
      addEventListener("keydown", (event) => { from ||= event.timeStamp; }, { capture: true });
      const watch = () => (from > 0 && document.querySelector(selector) ? requestAnimationFrame((at) => resolve(at - from)) : requestAnimationFrame(watch));
      requestAnimationFrame(watch);
    });
  }, there);
  await page.keyboard.press(key);
  return page.evaluate(() => (window as unknown as { painted: Promise<number> }).painted);
}

/** A hundred frames while the list scrolls, down and up again where it ends: the middle one counts,
 *  the slow ones tell how busy the machine is. */
async function scrollFrames(page: Page): Promise<number> {
  const frames = await grid(page).evaluate((element) => new Promise<number[]>((resolve) => {
    const took: number[] = [];
    let step = 180;
    let last = performance.now();
    const frame = (now: number) => {
      took.push(now - last);
      last = now;
      const before = element.scrollTop;
      element.scrollTop += step;
      if (element.scrollTop === before) step = -step;
      if (took.length < 100) requestAnimationFrame(frame);
      else resolve(took.slice(5).sort((a, b) => a - b));
    };
    requestAnimationFrame(frame);
  }));
  const at = (part: number) => frames[Math.floor(frames.length * part)] ?? 0;
  figures.push(`scroll frames: p50 ${at(0.5).toFixed(0)} ms, p95 ${at(0.95).toFixed(0)} ms`);
  return at(0.5);
}

/** How long each thing takes in one run, in ms. */
type Times = { rows: number; all: number; panel: number; list: number; time: number; graph: number };

/** Opens it, folds all out, scrolls, looks at it in each way; what it took. */
async function walk(page: Page, steps: number): Promise<Times> {
  const run = found[steps] ?? "";
  expect(run, "a run of this size is in the store").toMatch(/^run/);
  // Once before, so that the page's code is loaded and the plane has read the run.
  await openRun(page, run, "view=list");
  await page.goto("/ui/runs");
  await page.locator("[role=row] a").first().waitFor();
  const began = performance.now();
  await openRun(page, run, "view=list");
  await rows(page).first().waitFor();
  const first = performance.now() - began;
  await until("all of them are read", async () => (await page.getByText(/reading the steps/).count()) === 0, 60_000);
  const all = performance.now() - began;
  const said = await stated(page);
  expect(said.steps).toBeGreaterThanOrEqual(steps);
  expect(said.rows).toBeLessThanOrEqual(said.steps + said.groups);
  await grid(page).focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  const opened = await keyToPaint(page, "Enter", "[data-panel] section");
  await panel(page).getByRole("heading", { level: 2 }).waitFor();
  await page.keyboard.press("Escape");
  await panel(page).waitFor({ state: "detached" });
  await page.keyboard.press("e");
  await until("all is open", async () => (await stated(page)).folded === 0);
  expect((await stated(page)).rows).toBeGreaterThanOrEqual(steps);
  expect(await page.locator("*").count()).toBeLessThanOrEqual(6_000);
  const list = await scrollFrames(page);
  await shot(page, `run-of-${steps}-list`, false);
  await look(page, "time");
  const time = await scrollFrames(page);
  await shot(page, `run-of-${steps}-time`, false);
  await page.goto(`/ui/runs/${run}?view=tree`);
  const drawn = performance.now();
  await page.locator(".react-flow__node").first().waitFor();
  const graph = performance.now() - drawn;
  await shot(page, `run-of-${steps}-tree`, false);
  return { rows: first, all, panel: opened, list, time, graph };
}

/** Filters to what failed; how long until as many match as its count says. */
async function filter(page: Page, steps: number): Promise<number> {
  await openRun(page, found[steps] ?? "", "view=list");
  await until("all of them are read", async () => (await page.getByText(/reading the steps/).count()) === 0, 60_000);
  const failed = page.locator("[data-count=failed]");
  const many = Number.parseInt((await failed.innerText()).replaceAll(",", ""), 10);
  const began = performance.now();
  await failed.click();
  await until("they match", async () => (await page.locator("[data-counts]").innerText()).replaceAll(",", "").includes(`${many} match`));
  return performance.now() - began;
}

describe.each([[2_000, 500], [20_000, 2_000]] as const)("a run of %i steps", (steps, budget) => {
  test("is usable within its bound, and stays so", async () => {
    await on(async ({ page }) => {
      const small = await walk(page, LARGE.small);
      const large = await walk(page, steps);
      const of = (what: string, key: keyof Times) => ({ what: `${steps} steps: ${what}`, large: large[key], small: small[key] });
      figures.push(
        inProportion(of("the first rows", "rows"), budget, 8),
        inProportion(of("all of them", "all"), budget * 4, 40),
        inProportion(of("key to panel", "panel"), 100, 3),
        inProportion(of("a frame while scrolling, p50", "list"), 20, 3),
        inProportion(of("a frame while scrolling in time, p50", "time"), 20, 3),
        inProportion(of("the graph", "graph"), budget * 2, 8),
      );
    });
  }, 240_000);

  test("filters to what failed, and says how many", async () => {
    await on(async ({ page }) => {
      const small = await filter(page, LARGE.small);
      const large = await filter(page, steps);
      figures.push(inProportion({ what: `${steps} steps: a filter`, large, small }, steps > 5_000 ? 200 : 100, 8));
    });
  });
});
