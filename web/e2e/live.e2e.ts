// Pages while things go wrong or change fast: a plane that is killed, a route that fails, a clock
// that is off, many tabs, words that the page does not know, and a steady stream of events.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Page, Route } from "playwright-core";
import { type Watched, closeBrowser, open, shot } from "./harness/browser";
import { Plane } from "./harness/plane";
import { type StepColumns, grid, look, openRun, panel, row, rows, stated, stepOf, stepsOf, textOf } from "./harness/run-page";
import { until } from "./harness/waiting";
import { type Made, World } from "./harness/world";

let plane: Plane;
let world: World;
let runs: Record<string, Made>;

beforeAll(async () => {
  plane = await Plane.start();
  ({ world, runs } = await World.start(plane, { key: await plane.ownerKey(), agents: ["bulk", "trip", "geo", "weather", "report"], runs: ["failed", "paused"] }));
});
afterAll(async () => {
  await closeBrowser();
  await world?.close();
  await plane?.close();
});

async function on<T>(look: (watched: Watched) => Promise<T>, options: Parameters<typeof open>[1] = {}, faults: "none" | "wanted" = "none"): Promise<T> {
  const watched = await open(plane.url, options);
  try {
    const seen = await look(watched);
    if (faults === "none") watched.clean();
    // What a failed request writes to the console is the browser's; an error of the page is ours.
    else expect(watched.faults.filter((fault) => !/Failed to load resource|net::ERR|CONNECTION/.test(fault))).toEqual([]);
    return seen;
  } finally {
    await watched.close();
  }
}

const indicator = (page: Page) => page.locator("[data-live]").first();
const isLive = (page: Page) => page.locator("[data-live=live]").first().waitFor();

/** Every state that the page shows, in its order. */
const marks = (page: Page) => page.locator("main").locator(".state-mark[data-state]").evaluateAll((all) => all.map((each) => (each as HTMLElement).dataset.state ?? ""));

/** Shifts of the layout from now on; call the answer for their sum. */
async function shifts(page: Page): Promise<() => Promise<number>> {
  await page.evaluate(() => {
    const kept = window as unknown as { shifts: number };
    kept.shifts = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) kept.shifts += (entry as unknown as { value: number }).value;
    }).observe({ type: "layout-shift", buffered: false });
  });
  return () => page.evaluate(() => (window as unknown as { shifts: number }).shifts);
}

test("seven tabs load, and hold one stream", async () => {
  const streams = () => plane.metric(`muster_stream_readers{stream="sse"}`);
  const before = await streams();
  await on(async ({ page, context }) => {
    const tabs = [page, ...(await Promise.all(Array.from({ length: 6 }, () => context.newPage())))];
    for (const [at, tab] of tabs.entries()) await tab.goto(["/ui/", "/ui/runs", "/ui/agents", `/ui/runs/${runs.failed?.run}`, "/ui/queues", "/ui/fleet", "/ui/health"][at] ?? "/ui/");
    for (const tab of tabs) await isLive(tab);
    await until("one stream for all of them", async () => (await streams()) === before + 1);
  });
  await until("none afterwards", async () => (await streams()) === before);
});

test.each([1, -1])("a local clock that is %i h off changes no age", async (hours) => {
  const skewed = ({ context }: Watched) => context.addInitScript((by: number) => {
    // The page's clock in all its forms; without a worker, so that there is only this one.
    const Real = Date;
    const origin = performance.timeOrigin + by;
    Object.defineProperty(performance, "timeOrigin", { get: () => origin });
    const Wrong = class extends Real {
      constructor(...given: unknown[]) {
        if (given.length === 0) super(Real.now() + by);
        else super(...(given as [number]));
      }
      static override now() { return Real.now() + by; }
    };
    globalThis.Date = Wrong as DateConstructor;
    delete (globalThis as { SharedWorker?: unknown }).SharedWorker;
  }, hours * 3_600_000);
  const called = await plane.ask<{ run_id: string }>("/api/v1/execute/async/trip.city", { input: { city: "Metz" } });
  await on(async (watched) => {
    await skewed(watched);
    const { page } = watched;
    await page.goto("/ui/runs");
    await isLive(page);
    const line = page.locator("[role=row]", { has: page.locator(`a[href*="${called.run_id}"]`) }).first();
    const age = line.locator("time").last();
    await until("its age is seconds", async () => /^(now|\d+ s ago)$/.test(await textOf(age)));
    expect(await textOf(indicator(page))).toMatch(/Live (now|\d+ s)/);
    expect(Math.abs((await page.evaluate(() => Date.now())) - Date.now() - hours * 3_600_000)).toBeLessThan(60_000);
  });
});

describe("a failing route breaks one panel", () => {
  const broken = (page: Page, pattern: string | RegExp) => page.route(pattern, (route) => route.abort());

  test("the steps of a run: its head and its acts stay", async () => {
    await on(async ({ page }) => {
      await broken(page, /\/steps\?/);
      await page.goto(`/ui/runs/${runs.failed?.run}`);
      await page.getByRole("alert").filter({ hasText: "its steps" }).waitFor();
      await page.locator("main .state-mark[data-state=failed]").first().waitFor();
      expect(await page.getByRole("alert").count()).toBe(1);
      await page.unroute(/\/steps\?/);
      await page.getByRole("button", { name: "Retry" }).click();
      await page.locator("[data-counts]").waitFor();
    }, {}, "wanted");
  });

  test("the evidence of a step: its run stays", async () => {
    const step = (await stepsOf(plane, runs.failed?.run ?? ""))[1];
    await on(async ({ page }) => {
      await broken(page, /\/api\/v1\/why\//);
      await openRun(page, runs.failed?.run ?? "", `view=list&step=${step?.id}`);
      await panel(page).getByRole("alert").waitFor();
      expect(await page.getByRole("alert").count()).toBe(1);
      await rows(page).first().waitFor();
      await page.keyboard.press("Escape");
      await panel(page).waitFor({ state: "detached" });
    }, {}, "wanted");
  });

  test("a payload: the other tabs stay", async () => {
    const step = (await stepsOf(plane, runs.failed?.run ?? ""))[1];
    await on(async ({ page }) => {
      await broken(page, /\/payload\//);
      await openRun(page, runs.failed?.run ?? "", `view=list&step=${step?.id}&tab=input`);
      await panel(page).getByRole("alert").filter({ hasText: "Input" }).waitFor();
      await page.keyboard.press("w");
      await panel(page).getByRole("region", { name: "Evidence" }).waitFor();
      expect(await page.getByRole("alert").count()).toBe(0);
    }, {}, "wanted");
  });
});

describe("words and holes that the page does not know", () => {
  const edited = (edit: (told: never) => void) => async (route: Route) => {
    const answer = await route.fetch();
    const told = (await answer.json()) as never;
    edit(told);
    await route.fulfill({ response: answer, json: told });
  };

  test("an unknown state, kind of time, reason and category show themselves", async () => {
    await on(async ({ page }) => {
      let changed = "";
      await page.route(/\/steps\?/, edited((told: StepColumns) => {
        const { columns } = told as { columns: Record<string, unknown[]> } & StepColumns;
        changed = String(columns.id?.[1]);
        (columns.state as unknown[])[1] = "transmogrified";
        (columns.reason as unknown[])[1] = "because_of_the_moon";
        (columns.category as unknown[])[1] = "lunar";
        (columns.segments as unknown[])[1] = [["levitating", (columns.created as number[])[1], null]];
        (columns.why as unknown[])[1] = null;
        (columns.started as unknown[])[1] = null;
        (columns.ended as unknown[])[1] = null;
        (columns.flags as unknown[])[1] = 1 << 20;
      }));
      await page.route(/\/api\/v1\/runs\/run_[^/]+$/, edited((told: Record<string, unknown>) => {
        Object.assign(told, { state: "transmogrified", status: "transmogrified", took: null, lineage: null, why: null, ended_at: null, took_ms: null, usage: null, approvals: null, open_detached: null });
      }));
      await openRun(page, runs.failed?.run ?? "", "view=list&fold=none");
      const line = row(page, changed);
      expect(await textOf(line)).toContain("other(transmogrified)");
      await look(page, "time");
      await line.locator(".b-unknown").first().waitFor({ state: "attached" });
      await shot(page, "run-unknown-word", false);
      await look(page, "tree");
      await page.locator(`.react-flow__node [data-step="${changed}"]`).waitFor();
    });
  });

  test("all that may be missing is missing: every page of runs stands", async () => {
    const nothing = (told: unknown): unknown => {
      // Every value that is no id, list, table of counts or word of state is taken away.
      if (Array.isArray(told)) return told.map(nothing);
      if (told && typeof told === "object") {
        return Object.fromEntries(Object.entries(told).map(([key, value]) => {
          if (/id$|^state$|^status$|^target$|^agent$|^function$|^name$|^at$|_at$|^as_of$|^position$|^verdict$|^text$|^kind$|^command$|^by$|^input_size$|^attempt$|^lane$|^priority$|^doc$/.test(key)) return [key, value];
          return [key, value && typeof value === "object" ? nothing(value) : null];
        }));
      }
      return told;
    };
    await on(async ({ page }) => {
      await page.route(/\/api\/v1\/(runs|executions|why)(\/[^/?]+)?(\?|$)/, async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ response: answer, json: nothing(await answer.json()) });
      });
      const step = (await stepsOf(plane, runs.failed?.run ?? ""))[1];
      await page.goto("/ui/runs");
      await page.locator(`a[href*="${runs.failed?.run}"]`).first().waitFor();
      await page.goto("/ui/runs?v=executions");
      await page.locator("[role=row] a").first().waitFor();
      await openRun(page, runs.failed?.run ?? "", `view=list&step=${step?.id}&tab=why`);
      await panel(page).getByRole("heading", { level: 2 }).waitFor();
      for (const key of ["i", "o", "t", "m", "w"]) await page.keyboard.press(key);
      expect(await page.getByRole("alert").count()).toBe(0);
      expect(await textOf(page.locator("main"))).not.toMatch(/NaN|undefined|Invalid Date|\bnull\b/);
    });
  });
});

test("a steady stream of events moves nothing in the list, and what is new is counted", async () => {
  await on(async ({ page }) => {
    await page.goto("/ui/runs?t=all");
    await isLive(page);
    const list = page.getByRole("grid").or(page.getByRole("table")).first();
    await list.locator("[role=row] a").first().waitFor();
    // Its ages go on; what it is stays.
    const firstOf = () => list.locator("[role=row]").nth(1).locator("a").first().getAttribute("href");
    const first = await firstOf();
    const sum = await shifts(page);
    const began = (await stepsOf(plane, (await world.make("growing 150")).run)).length;
    expect(began).toBeGreaterThanOrEqual(0);
    const made = await Promise.all(Array.from({ length: 5 }, () => plane.ask<{ run_id: string }>("/api/v1/execute/async/trip.city", { input: { city: "Ulm" } })));
    const bar = page.getByRole("button", { name: /\d+ new/ });
    await until("6 new", async () => (await bar.count()) > 0 && (await textOf(bar)).includes("6 new"));
    expect(await firstOf()).toBe(first);
    await stepOf(plane, made[4]?.run_id ?? "", "ended", (step) => step.parent < 0 && step.state === "succeeded");
    expect(await sum()).toBe(0);
    await page.keyboard.press("n");
    await list.locator(`a[href*="${made[4]?.run_id}"]`).first().waitFor();
  });
});

test("no animation is left running for whoever wants less motion", async () => {
  await on(async ({ page }) => {
    await openRun(page, runs.paused?.run ?? "", "view=time");
    await isLive(page);
    expect(await page.evaluate(() => document.getAnimations().filter((each) => each.playState === "running").length)).toBe(0);
  });
});

// Last: the plane is killed.
test("a killed plane: data stays and says its age, acts wait, and nothing is lost when it is back", async () => {
  const made = await world.make("growing 120");
  await until("thirty steps", async () => (await stepsOf(plane, made.run)).length > 30);
  const called = await plane.ask<{ run_id: string }>("/api/v1/execute/async/trip.slow_tree", { input: { width: 2 } });
  await stepOf(plane, called.run_id, "its calls run", (step) => step.name === "weather.slow" && step.state === "running");
  await on(async ({ page, context }) => {
    const other = await context.newPage();
    await openRun(page, called.run_id, "view=list&fold=none");
    await other.goto("/ui/runs?t=all");
    await isLive(page);
    await isLive(other);
    await other.locator("[role=row] a").first().waitFor();
    const before = { page: await marks(page), other: await marks(other), counts: await stated(page) };
    await plane.kill9();
    await page.locator("[data-live=reconnecting]").first().waitFor();
    expect(await textOf(indicator(page))).toMatch(/Reconnecting, data .+ old/);
    await until("it says since when", async () => /Offline since \d/.test(await textOf(indicator(page))), 40_000);
    // The list asks again by itself in the meantime: a failed request is unknown, not zero.
    expect(await marks(page)).toEqual(before.page);
    expect(await marks(other)).toEqual(before.other);
    expect(await stated(page)).toEqual(before.counts);
    const pause = page.getByRole("button", { name: /^Pause/ }).first();
    expect(await pause.getAttribute("aria-disabled")).toBe("true");
    await shot(page, "run-offline", false);
    await shot(other, "runs-offline", false);
    await plane.again();
    await until("resynced", async () => /Resynced/.test(await textOf(indicator(page))) || (await page.locator("[data-live=live]").count()) > 0, 30_000);
    await until("each row is as the plane tells it, none is lost", async () => {
      const told = await stepsOf(plane, called.run_id);
      const shown = await rows(page).evaluateAll((all) => all.map((each) => `${(each as HTMLElement).dataset.step} ${(each as HTMLElement).dataset.state}`));
      return shown.length === told.length && told.every((step) => shown.includes(`${step.id} ${step.state}`));
    }, 60_000);
    await openRun(page, made.run, "view=list&fold=none");
    const total = (await stepsOf(plane, made.run)).length;
    await until("no step of the other run is lost", async () => (await stated(page)).steps >= total);
    await grid(page).waitFor();
  }, {}, "wanted");
});
