// A store with 100,000 executions and 1,000 machines opens like a small one. The bounds are four
// times the budgets, because the machine that tests may be busy; the figures are printed.
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Watched, closeBrowser, open, shot } from "./harness/browser";
import { LARGE, largeStore } from "./harness/large";
import { settled } from "./harness/look";
import { Plane } from "./harness/plane";

const SLACK = 4;
const BUDGET = { paint: 600, rows: 1_000, elements: 6_000, frame: 20 } as const;
let data: string;
let plane: Plane;
let watched: Watched;

beforeAll(async () => {
  data = await largeStore();
  plane = await Plane.start({ data });
  watched = await open(plane.url, { key: await plane.ownerKey() });
  await watched.page.goto("/ui/settings/about");
}, 240_000);
afterAll(async () => {
  await watched?.close();
  await plane?.close();
  if (data) await rm(data, { recursive: true, force: true });
  await closeBrowser();
});

test.each([
  ["/ui/", "section, [data-calm]"], ["/ui/runs?t=all", ".list-row"], ["/ui/runs?v=executions&t=all", ".list-row"],
  ["/ui/fleet", "section[aria-label=Nodes] table tr, section[aria-label=Nodes] li"], ["/ui/fleet?view=table", "section[aria-label=Nodes] [role=row], section[aria-label=Nodes] tr"],
])("%s", async (path, row) => {
  const { page } = watched;
  const begin = performance.now();
  await page.goto(path, { waitUntil: "commit" });
  await page.locator(row).first().waitFor();
  const rows = performance.now() - begin;
  await settled(page);
  const seen = await page.evaluate(() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0,
    elements: document.querySelectorAll("*").length,
  }));
  console.log(`${path}: first paint ${Math.round(seen.paint)} ms, rows ${Math.round(rows)} ms, ${seen.elements} elements`);
  await shot(page, `large-${path.replaceAll(/\W+/g, "-")}`, false);
  expect(seen.paint).toBeLessThan(BUDGET.paint * SLACK);
  expect(rows).toBeLessThan(BUDGET.rows * SLACK);
  expect(seen.elements).toBeLessThan(BUDGET.elements);
  watched.clean();
});

test("scrolling far through executions stays bounded, and loads as it goes", async () => {
  const { page } = watched;
  await page.goto("/ui/runs?v=executions&t=all");
  const box = page.locator(".list-box");
  await box.waitFor();
  await settled(page);
  const frames = await page.evaluate(async () => {
    const box = document.querySelector(".list-box") as HTMLElement;
    const took: number[] = [];
    let before = performance.now();
    for (let turn = 0; turn < 120; turn += 1) {
      box.scrollTop += 120;
      await new Promise(requestAnimationFrame);
      took.push(performance.now() - before);
      before = performance.now();
    }
    return took.sort((a, b) => a - b);
  });
  const at = (part: number) => frames[Math.floor(frames.length * part)] ?? 0;
  console.log(`scroll frame p50 ${at(0.5).toFixed(1)} ms, p95 ${at(0.95).toFixed(1)} ms of ${LARGE.executions} executions`);
  // The median: the last frames say how busy the machine is, not how the list scrolls.
  expect(at(0.5)).toBeLessThan(BUDGET.frame * SLACK);
  expect(await page.locator("*").count()).toBeLessThan(BUDGET.elements);
  watched.clean();
});
