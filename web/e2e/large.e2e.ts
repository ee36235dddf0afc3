// A store with 100,000 executions and 1,000 machines opens like a small one. The bounds are four
// times the budgets, because the machine that tests may be busy; the figures are printed.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Watched, shot } from "./harness/browser";
import { LARGE, inProportion, largeStore } from "./harness/large";
import { settled } from "./harness/look";
import type { Plane } from "./harness/plane";
import { Scene, end } from "./harness/scene";

const SLACK = 4;
const BUDGET = { paint: 600, rows: 1_000, elements: 6_000, frame: 20 } as const;
let plane: Plane;
let watched: Watched;

beforeAll(async () => {
  ({ plane, watched } = await Scene.begin({ data: await largeStore() }));
  await watched.page.goto("/ui/settings/about");
}, 240_000);
afterAll(end);

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
  /** How long frames take, in order of length, while the list moves by so much in each. */
  const framesOf = (by: number) => page.evaluate(async (by) => {
    const box = document.querySelector(".list-box") as HTMLElement;
    const took: number[] = [];
    let before = performance.now();
    for (let turn = 0; turn < 120; turn += 1) {
      box.scrollTop += by;
      await new Promise(requestAnimationFrame);
      took.push(performance.now() - before);
      before = performance.now();
    }
    return took.sort((a, b) => a - b);
  }, by);
  const still = await framesOf(0);
  const frames = await framesOf(120);
  const at = (part: number, of = frames) => of[Math.floor(of.length * part)] ?? 0;
  console.log(`scroll frame p50 ${at(0.5).toFixed(1)} ms, p95 ${at(0.95).toFixed(1)} ms of ${LARGE.executions} executions`);
  // The median: the last frames say how busy the machine is, not how the list scrolls.
  inProportion({ what: "a frame of scrolling", large: at(0.5), small: at(0.5, still) }, BUDGET.frame * SLACK, SLACK);
  expect(await page.locator("*").count()).toBeLessThan(BUDGET.elements);
  watched.clean();
});

test("a run of more steps than are read one by one is shown by its groups, none of them uncounted", async () => {
  type Groups = { total: number; more: number; groups: { name: string; total: number; states: Record<string, number>; first_failed_id?: string | null }[] };
  const { page } = watched;
  const most = LARGE.runs[2];
  let run: string | undefined;
  for (let cursor = ""; run === undefined;) {
    const told = await plane.ask<{ runs: { run_id: string; executions: number }[]; next_cursor?: string | null }>(`/api/v1/runs?limit=1000${cursor && `&cursor=${cursor}`}`);
    run = told.runs.find((each) => each.executions >= most)?.run_id;
    cursor = told.next_cursor ?? "";
    if (!cursor) break;
  }
  expect(run, "a run of this size is in the store").toBeDefined();
  const told = await plane.ask<Groups>(`/api/v1/runs/${run}/groups`);
  // The largest groups are listed; how many are not is said.
  const listed = told.groups.reduce((sum, group) => sum + group.total, 0);
  if (told.more === 0) expect(listed, "the groups add up").toBe(told.total);
  else expect(listed + told.more, "each that is left out has a step").toBeLessThanOrEqual(told.total);
  const began = performance.now();
  await page.goto(`/ui/runs/${run}`);
  const table = page.getByRole("table", { name: "Groups of steps" });
  await table.locator("[role=row]").nth(1).waitFor();
  console.log(`groups of ${told.total} steps: ${Math.round(performance.now() - began)} ms`);
  await page.getByText(new RegExp(`${told.total.toLocaleString("en-US")} steps: more than 20,000 are shown as groups, ${told.groups.length.toLocaleString("en-US")} of them${told.more > 0 ? `, ${told.more.toLocaleString("en-US")} smaller ones are left out` : ""}`)).waitFor();
  expect(Number(await table.getAttribute("aria-rowcount"))).toBe(told.groups.length);
  const [first] = told.groups;
  const row = table.locator("[role=row]").nth(1);
  expect(await row.textContent()).toContain(`×${first?.total.toLocaleString("en-US")}`);
  for (const [state, many] of Object.entries(first?.states ?? {}).filter(([, many]) => many > 0)) {
    expect(await row.textContent(), state).toContain(many.toLocaleString("en-US"));
  }
  expect(await page.locator("*").count()).toBeLessThan(BUDGET.elements);
  await shot(page, "large-groups", false);
  const failed = told.groups.findIndex((group) => group.first_failed_id);
  expect(failed, "some group has a failure").toBeGreaterThanOrEqual(0);
  await table.evaluate((box, at) => { box.scrollTop = at * 28; }, failed);
  await table.locator(`a[href$="/executions/${told.groups[failed]?.first_failed_id}"]`).first().click();
  await page.locator("main .state-mark[data-state=failed], [data-panel] .state-mark[data-state=failed]").first().waitFor();
  watched.clean();
});
