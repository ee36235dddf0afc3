// A page that stays open for long: after many walks over all pages and thousands of events it holds
// no more than at first, and stays within the bounds of a day at work.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Watched } from "./harness/browser";
import { linked } from "./harness/live";
import { settled } from "./harness/look";
import type { Plane } from "./harness/plane";
import { Scene, end, walk } from "./harness/scene";
import { until } from "./harness/waiting";
import type { World } from "./harness/world";

const ROUNDS = 10;
const EVENTS = 3_000;
const MIB = 1024 * 1024;
const BUDGET = { heap: 150 * MIB, elements: 6_000, growth: 12 * MIB } as const;
let plane: Plane;
let world: World;
let watched: Watched;

beforeAll(async () => {
  ({ plane, world, watched } = await Scene.begin({ agents: ["bulk", "weather"] }));
});
afterAll(end);

test(`${ROUNDS} walks over all pages while ${EVENTS} events come: the heap and the document stay small`, async () => {
  const { page, context } = watched;
  const session = await context.newCDPSession(page);
  await session.send("Performance.enable");
  const heap = async (): Promise<number> => {
    await session.send("HeapProfiler.collectGarbage");
    await session.send("HeapProfiler.collectGarbage");
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find((each) => each.name === "JSHeapUsedSize")?.value ?? Number.NaN;
  };
  await walk(page, "/ui/");
  await linked(page);
  const { run } = await world.make("growing 3000 6");
  const from = await plane.metric("muster_event_sequence");
  const events = async () => (await plane.metric("muster_event_sequence")) - from;
  const places = await page.getByRole("navigation", { name: "Places" }).getByRole("link").all();
  expect(places.length).toBeGreaterThanOrEqual(7);
  let most = 0;
  // Within the page: a load would begin with an empty heap.
  const round = async () => {
    for (const place of places) {
      await place.click();
      await settled(page);
    }
    await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: /Runs/ }).click();
    await page.locator(`a[href$="/runs/${run}"]`).first().click();
    await page.locator("[data-counts]").waitFor();
    for (const key of ["3", "2"]) await page.keyboard.press(key);
    most = Math.max(most, await page.evaluate(() => document.querySelectorAll("*").length));
  };
  // The first walks load code and fill what is kept for Back.
  await round();
  await round();
  const before = await heap();
  for (let many = 2; many < ROUNDS; many += 1) await round();
  await until(`${EVENTS} events have come`, async () => (await events()) >= EVENTS, 120_000);
  await round();
  const after = await heap();
  console.info(`heap ${(before / MIB).toFixed(1)} → ${(after / MIB).toFixed(1)} MiB after ${ROUNDS} walks and ${await events()} events, at most ${most} elements`);
  expect(after).toBeLessThan(BUDGET.heap);
  expect(after - before, "grows").toBeLessThan(BUDGET.growth);
  expect(most).toBeLessThan(BUDGET.elements);
  watched.clean();
}, 300_000);
