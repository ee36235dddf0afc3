// Runs of 2,000 and of 20,000 steps out of a large store: they open, scroll and select like small
// ones. The bounds are four times the budgets, because the machine of a test is busy; the numbers
// that were measured are printed.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { type Watched, closeBrowser, open, shot } from "./harness/browser";
import { LARGE, largeStore } from "./harness/large";
import { Plane } from "./harness/plane";
import { grid, look, openRun, panel, rows, stated } from "./harness/run-page";
import { until } from "./harness/waiting";

const TIMES = 4;
let plane: Plane;
const found: Record<number, string> = {};
const figures: string[] = [];

beforeAll(async () => {
  plane = await Plane.start({ data: await largeStore() });
  type Found = { runs: { run_id: string; executions: number }[]; next_cursor?: string };
  let cursor = "";
  do {
    const page = await plane.ask<Found>(`/api/v1/runs?limit=1000${cursor && `&cursor=${cursor}`}`);
    for (const run of page.runs) for (const steps of LARGE.runs) if (run.executions >= steps && run.executions < steps * 1.2) found[steps] ??= run.run_id;
    cursor = page.next_cursor ?? "";
  } while (cursor && Object.keys(found).length < LARGE.runs.length);
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

function within(what: string, ms: number, budget: number): void {
  figures.push(`${what}: ${Math.round(ms)} ms (budget ${budget} ms)`);
  expect(ms, what).toBeLessThanOrEqual(budget * TIMES);
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

/** The 95th of a hundred frames while the list scrolls. */
async function scrollFrames(page: Page): Promise<number> {
  return grid(page).evaluate((element) => new Promise<number>((resolve) => {
    const took: number[] = [];
    let last = performance.now();
    const frame = (now: number) => {
      took.push(now - last);
      last = now;
      element.scrollTop += 180;
      if (took.length < 100) requestAnimationFrame(frame);
      else resolve(took.slice(5).sort((a, b) => a - b)[Math.floor(95 * 0.95)] ?? 0);
    };
    requestAnimationFrame(frame);
  }));
}

describe.each([[2_000, 500], [20_000, 2_000]] as const)("a run of %i steps", (steps, budget) => {
  test("is usable within its bound, and stays so", async () => {
    const run = found[steps] ?? "";
    expect(run, "a run of this size is in the store").toMatch(/^run/);
    await on(async ({ page }) => {
      // Once before, so that the page's code is loaded and the plane has read the run.
      await openRun(page, run, "view=list");
      await page.goto("/ui/runs");
      await page.locator("[role=row] a").first().waitFor();
      const began = performance.now();
      await openRun(page, run, "view=list");
      await rows(page).first().waitFor();
      within(`${steps} steps: the first rows`, performance.now() - began, budget);
      await until("all of them are read", async () => (await page.getByText(/reading the steps/).count()) === 0, 60_000);
      within(`${steps} steps: all of them`, performance.now() - began, budget * 4);
      const said = await stated(page);
      expect(said.steps).toBeGreaterThanOrEqual(steps);
      expect(said.rows).toBeLessThanOrEqual(said.steps + said.groups);
      await grid(page).focus();
      await page.keyboard.press("Home");
      await page.keyboard.press("ArrowDown");
      within(`${steps} steps: key to panel`, await keyToPaint(page, "Enter", "[data-panel] section"), 100);
      await panel(page).getByRole("heading", { level: 2 }).waitFor();
      await page.keyboard.press("Escape");
      await panel(page).waitFor({ state: "detached" });
      await page.keyboard.press("e");
      await until("all is open", async () => (await stated(page)).folded === 0);
      expect((await stated(page)).rows).toBeGreaterThanOrEqual(steps);
      expect(await page.locator("*").count()).toBeLessThanOrEqual(6_000);
      within(`${steps} steps: a frame while scrolling, p95`, await scrollFrames(page), 20);
      await shot(page, `run-of-${steps}-list`, false);
      await look(page, "time");
      within(`${steps} steps: a frame while scrolling in time, p95`, await scrollFrames(page), 20);
      await shot(page, `run-of-${steps}-time`, false);
      await page.goto(`/ui/runs/${run}?view=tree`);
      const drawn = performance.now();
      await page.locator(".react-flow__node").first().waitFor();
      within(`${steps} steps: the graph`, performance.now() - drawn, budget * 2);
      await shot(page, `run-of-${steps}-tree`, false);
    });
  });

  test("filters to what failed, and says how many", async () => {
    await on(async ({ page }) => {
      await openRun(page, found[steps] ?? "", "view=list");
      await until("all of them are read", async () => (await page.getByText(/reading the steps/).count()) === 0, 60_000);
      const failed = page.locator("[data-count=failed]");
      if ((await failed.count()) === 0) return;
      const many = Number.parseInt((await failed.innerText()).replaceAll(",", ""), 10);
      const began = performance.now();
      await failed.click();
      await until("they match", async () => (await page.locator("[data-counts]").innerText()).replaceAll(",", "").includes(`${many} match`));
      within(`${steps} steps: a filter`, performance.now() - began, steps > 5_000 ? 200 : 100);
    });
  });
});
