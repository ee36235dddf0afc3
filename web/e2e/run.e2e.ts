// One run as people see it: three views of the same steps, everything that can happen to a step,
// keys, folds, filters, live changes that move nothing, and two runs compared.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OpenOptions, type Theme, WIDTHS, type Watched, accessibility, shot } from "./harness/browser";
import { shiftsFrom } from "./harness/calm";
import type { Plane } from "./harness/plane";
import { type ToldStep, type View, card, grid, look, openRun, panel, row, rows, stated, stepOf, stepsOf, textOf } from "./harness/run-page";
import { Scene, end, visit } from "./harness/scene";
import { until } from "./harness/waiting";
import type { Made, World } from "./harness/world";

let plane: Plane;
let world: World;
let runs: Record<string, Made>;
const of = (kind: string): string => runs[kind]?.run ?? "";

beforeAll(async () => {
  ({ plane, world, runs } = await Scene.begin({ agents: true, runs: ["restarted", "observed", "timeout", "late", "orphaned", "cancelled", "detached", "trip"], page: false }));
});
afterAll(end);

const on = (look: (watched: Watched) => Promise<void>, options: OpenOptions = {}) => visit(plane, look, options);

const FLAGS = { detached: 1, observed: 2, overCap: 4, lateOutcome: 8, replayed: 16, stoppedKnowing: 64 };
const has = (step: ToldStep, flag: keyof typeof FLAGS) => (step.flags & FLAGS[flag]) !== 0;

/** A thing that can happen to a step, and how each view must show it. */
type Thing = {
  thing: string;
  run(): Promise<string> | string;
  is(step: ToldStep): boolean;
  /** In the row of the list, or its title. */
  words: RegExp;
  /** What its bar or mark is made of. */
  bar: string;
  /** What its card says of itself. */
  card: string;
  /** Undoes what was set up. */
  after?(): Promise<unknown>;
};

const THINGS: Thing[] = [
  {
    thing: "queued",
    run: async () => {
      await plane.ask("/api/v1/nodes/weather/cap", { cap: 2 }, "PUT");
      return (await world.make("slow 4")).run;
    },
    is: (step) => step.state === "queued", words: /queued.*(position|full|slot)/i, bar: ".b-queued", card: "[data-state=queued]",
    after: () => plane.ask("/api/v1/nodes/weather/cap", { cap: 0 }, "PUT"),
  },
  { thing: "running", run: async () => (await world.make("slow 2")).run, is: (step) => step.name === "weather.slow" && step.state === "running", words: /running/, bar: ".b-solid", card: "[data-state=running]" },
  { thing: "waiting for a person", run: () => of("trip"), is: (step) => step.name === "budget.approve" && step.state === "waiting", words: /waiting.*(person|decide|approv)/i, bar: ".b-person", card: "[data-state=waiting]" },
  { thing: "paused", run: async () => (await world.make("paused")).run, is: (step) => step.state === "paused", words: /paused/, bar: ".b-paused", card: "[data-state=paused]" },
  { thing: "reused from another run", run: () => of("restarted"), is: (step) => has(step, "replayed"), words: /reused from/, bar: "svg path", card: "[data-mark~=reused]" },
  { thing: "cancelled", run: () => of("cancelled"), is: (step) => step.state === "cancelled", words: /cancelled/, bar: "svg.c-neutral", card: "[data-state=cancelled]" },
  { thing: "detached from its caller", run: () => of("detached"), is: (step) => has(step, "detached"), words: /detached/, bar: ".b-solid", card: "[data-mark~=detached]" },
  { thing: "observed, not dispatched", run: () => of("observed"), is: (step) => has(step, "observed"), words: /reported by the agent, not dispatched/, bar: ".b-observed", card: "[data-mark~=observed]" },
  { thing: "nobody knows how it ended", run: () => of("orphaned"), is: (step) => has(step, "stoppedKnowing"), words: /failed\?.*agent_restart_orphaned|nobody knows how it ended/, bar: ".b-doubt", card: "[data-mark~=doubt]" },
  { thing: "an outcome after its end", run: () => of("late"), is: (step) => has(step, "lateOutcome"), words: /late answer/, bar: "svg.c-time path", card: "[data-state=timeout]" },
  { thing: "timed out", run: () => of("timeout"), is: (step) => step.state === "timeout", words: /timeout/, bar: ".b-time", card: "[data-state=timeout]" },
  {
    thing: "over the cap",
    run: async () => {
      // One slot more than what other runs hold: the root takes it, and what it calls goes over.
      const { running } = await plane.ask<{ running: number }>("/api/v1/queues/trip");
      await plane.ask("/api/v1/nodes/trip/cap", { cap: running + 1 }, "PUT");
      return (await world.make("nested")).run;
    },
    is: (step) => has(step, "overCap"), words: /over the cap/, bar: "svg path", card: "[data-state]",
    after: () => plane.ask("/api/v1/nodes/trip/cap", { cap: 0 }, "PUT"),
  },
  { thing: "failed", run: () => of("failed"), is: (step) => step.state === "failed" && step.name === "report.render", words: /failed.*agent_error|KeyError/, bar: "svg.c-fail .b-solid", card: "[data-state=failed]" },
];

describe("what can happen to a step is seen in each view", () => {
  test.each(THINGS)("$thing", async (each) => {
    const run = await each.run();
    try {
      const step = await stepOf(plane, run, each.thing, each.is, 100_000);
      await on(async ({ page }) => {
        await openRun(page, run, "view=list&fold=none");
        const inList = row(page, step.id);
        await inList.waitFor();
        const says = await until(`the list says ${each.words}`, async () => {
          const said = `${await textOf(inList)} · ${await inList.getAttribute("title")}`;
          return each.words.test(said) ? said : undefined;
        }, 10_000).catch(async (error: unknown) => { throw new Error(`${String(error)}: ${await textOf(inList)} · ${await inList.getAttribute("title")}`); });
        expect(says).toMatch(each.words);
        await look(page, "time");
        const inTime = row(page, step.id);
        await inTime.locator(".step-time").locator(each.bar).first().waitFor({ state: "attached" });
        await shot(page, `run-${each.thing.replaceAll(/[ ,]+/g, "-")}-time`, false);
        await look(page, "tree");
        await page.keyboard.press("Shift+Z");
        const inTree = card(page, step.id);
        await inTree.waitFor();
        expect(await inTree.evaluate((element, selector) => element.matches(selector), each.card)).toBe(true);
        await shot(page, `run-${each.thing.replaceAll(/[ ,]+/g, "-")}-tree`, false);
      });
    } finally {
      await each.after?.();
    }
  }, 150_000);

  test("an absorbed restart, while it lasts and after it", async () => {
    const made = await world.make("held");
    const held = await stepOf(plane, made.run, "waits for the restart", (step) => step.name === "hotel.search" && step.reason === "awaiting_agent_restart");
    await on(async ({ page }) => {
      await openRun(page, made.run, "view=time&fold=none");
      const inTime = row(page, held.id);
      await inTime.locator(".b-absorbed").first().waitFor({ state: "attached" });
      expect(await inTime.getAttribute("title")).toMatch(/absorbed/);
      await shot(page, "run-absorbed-time", false);
      await world.say("start hotel");
      // Live: no reload. It is never shown as failed, and the mark stays after it succeeded.
      await page.locator(`[role=row][data-step="${held.id}"][data-state=succeeded]`).waitFor();
      await inTime.locator(".b-absorbed").first().waitFor({ state: "attached" });
      await look(page, "tree");
      await page.keyboard.press("Shift+Z");
      await card(page, held.id).waitFor();
    });
    const after = await stepOf(plane, made.run, "succeeded", (step) => step.id === held.id && step.state === "succeeded");
    expect(after.kinds).toContain("absorbed");
  });

  test("a decision: who is waited for, then what was decided", async () => {
    const made = await world.make("trip");
    const asks = await stepOf(plane, made.run, "asks", (step) => step.name === "budget.approve" && step.state === "waiting");
    await on(async ({ page }) => {
      await openRun(page, made.run, "view=time&fold=none");
      await row(page, asks.id).getByRole("button", { name: "Decide" }).click();
      await panel(page).getByRole("tab", { name: /Why/, selected: true }).waitFor();
      expect(new URL(page.url()).searchParams.get("step")).toBe(asks.id);
      await plane.ask(`/api/v1/executions/${asks.id}/approval-response`, { decision: "approved" });
      await page.locator(`[role=row][data-step="${asks.id}"][data-state=succeeded]`).waitFor();
      await row(page, asks.id).locator(".b-person").first().waitFor({ state: "attached" });
      // The run goes on and ends on the same page.
      await page.locator("main .state-mark[data-state=succeeded]").first().waitFor();
    });
  });
});

describe("one truth", () => {
  test("the list of runs says what the plane says, and each run's page the same", async () => {
    const told = await plane.ask<{ runs: { run_id: string; state: string; name: string; executions: number; counts: Record<string, number> }[]; total: number; counts: Record<string, number> }>("/api/v1/runs?limit=100");
    await on(async ({ page }) => {
      await page.goto("/ui/runs");
      for (const run of told.runs.filter((each) => !["running", "queued"].includes(each.state))) {
        const link = page.locator(`a[href*="/ui/runs/${run.run_id}"]`).first();
        const line = page.locator("[role=row]", { has: link });
        expect(await line.locator(".state-mark").first().getAttribute("data-state"), run.name).toBe(run.state);
      }
      for (const run of [of("failed"), of("trip"), of("cancelled")]) {
        const own = told.runs.find((each) => each.run_id === run);
        await openRun(page, run);
        expect(await page.locator("main .state-mark").first().getAttribute("data-state")).toBe(own?.state);
        const counts: Record<string, number> = {};
        for (const each of await page.locator("[data-count]").all()) counts[(await each.getAttribute("data-count")) ?? ""] = Number.parseInt((await each.innerText()).replaceAll(",", ""), 10);
        expect(counts).toEqual(Object.fromEntries(Object.entries(own?.counts ?? {}).filter(([, many]) => many > 0)));
        expect((await stated(page)).steps).toBe(own?.executions);
      }
    });
  });

  test("each count of a run's head filters to exactly what it counts", async () => {
    await on(async ({ page }) => {
      await openRun(page, of("trip"), "view=list&fold=none");
      const states = await page.locator("[data-count]").evaluateAll((all) => all.map((each) => (each as HTMLElement).dataset.count ?? ""));
      expect(states.length).toBeGreaterThan(1);
      for (const state of states) {
        const count = page.locator(`[data-count="${state}"]`);
        const many = Number.parseInt(await count.innerText(), 10);
        await count.click();
        await until(`${many} match`, async () => (await textOf(page.locator("[data-counts]"))).includes(`${many} match`));
        // Callers of what matches stand above it, marked as the way there.
        expect(await rows(page).and(page.locator(`[data-state="${state}"]:not([data-way])`)).count()).toBe(many);
      }
    });
  });

  test("filters of the list are the plane's", async () => {
    type Found = { runs: { run_id: string }[]; total: number };
    const cases: [string, string, (found: Found) => void][] = [
      ["label=session%3Ddemo", "label=session%3Ddemo", (found) => expect(found.runs.map((each) => each.run_id)).toContain(of("trip"))],
      ["fn=observed", "function=observed", (found) => expect(found.runs.map((each) => each.run_id)).toEqual([of("observed")])],
      ["state=timeout", "status=timeout", (found) => expect(found.runs.map((each) => each.run_id).sort()).toEqual([of("late"), of("timeout")].sort())],
      ["category=agent_restart_orphaned", "category=agent_restart_orphaned", (found) => expect(found.runs.map((each) => each.run_id)).toContain(of("orphaned"))],
      ["origin=ci", "origin=ci", (found) => expect(found.total).toBe(0)],
    ];
    await on(async ({ page }) => {
      for (const [shown, asked, check] of cases) {
        const found = await plane.ask<Found>(`/api/v1/runs?limit=100&${asked}`);
        check(found);
        await page.goto(`/ui/runs?t=all&${shown}`);
        if (found.total === 0) await page.getByText(/No runs match/).waitFor();
        else await page.locator(`a[href*="/ui/runs/${found.runs[0]?.run_id}"]`).first().waitFor();
        const ids = await page.locator("[role=row] a[href*='/ui/runs/run_']").evaluateAll((links) => [...new Set(links.map((link) => /run_[0-9A-Za-z]+/.exec((link as HTMLAnchorElement).href)?.[0]))]);
        expect(ids.sort(), shown).toEqual(found.runs.map((each) => each.run_id).sort());
      }
    });
  });
});

describe("keys, the address, and folds", () => {
  test("a step is found, opened, walked from and left without a mouse", async () => {
    const steps = await stepsOf(plane, of("failed"));
    await on(async ({ page }) => {
      await openRun(page, of("failed"), "view=list&fold=none");
      await grid(page).focus();
      await page.keyboard.press("Home");
      await page.keyboard.press("j");
      await page.keyboard.press("Enter");
      await panel(page).waitFor();
      const step = () => new URL(page.url()).searchParams.get("step");
      const first = await until("a step in the address", () => step());
      expect(steps.map((each) => each.id)).toContain(first);
      await panel(page).getByRole("heading", { level: 2 }).waitFor();
      const told = steps.find((each) => each.id === first);
      await page.keyboard.press("{");
      await until("its caller", () => step() === steps[told?.parent ?? -1]?.id);
      await page.keyboard.press("}");
      await until("its first call", () => steps.find((each) => each.id === step())?.parent === steps.indexOf(steps[told?.parent ?? -1] as ToldStep));
      const before = step();
      await page.keyboard.press("]");
      await until("the step after", () => step() !== before);
      await page.keyboard.press("[");
      await until("the step before", () => step() === before);
      for (const [key, tab] of [["i", "Input"], ["o", "Output"], ["t", "Attempts"], ["m", "Logs"], ["w", "Why"]] as const) {
        await page.keyboard.press(key);
        await panel(page).getByRole("tab", { name: new RegExp(`^${tab}`), selected: true }).waitFor();
      }
      await page.keyboard.press("c");
      await until("the id is copied", async () => (await page.evaluate(() => navigator.clipboard.readText())) === before);
      // Everything of it survives a reload, and is the same in another view.
      await page.reload();
      await panel(page).getByRole("tab", { name: /^Why/, selected: true }).waitFor();
      expect(await rows(page).and(page.locator("[aria-selected=true]")).getAttribute("data-step")).toBe(before);
      await look(page, "time");
      expect(await rows(page).and(page.locator("[aria-selected=true]")).getAttribute("data-step")).toBe(before);
      await look(page, "tree");
      await page.locator(`.react-flow__node [data-step="${before}"][data-selected]`).waitFor();
      await page.keyboard.press("Escape");
      await panel(page).waitFor({ state: "detached" });
      expect(step()).toBeNull();
    });
  });

  test("folds are stated, are the reader's, and stay so through live changes and a reload", async () => {
    const made = await world.make("growing 160");
    await stepOf(plane, made.run, "has some calls", (step) => step.name === "bulk.leaf" && step.state === "succeeded");
    await on(async ({ page }) => {
      await openRun(page, made.run, "view=list");
      const group = rows(page).filter({ hasText: "leaf" }).filter({ hasText: "×" }).first();
      await group.waitFor();
      const sound = async () => {
        const now = await stated(page);
        return (await rows(page).count()) <= now.rows && now.steps >= now.folded ? now : undefined;
      };
      const at = await until("what is folded is stated", sound);
      expect(at.groups).toBeGreaterThan(0);
      expect(at.folded).toBeGreaterThan(0);
      await group.click();
      await until("the group is open", async () => (await group.getAttribute("aria-expanded")) === "true");
      await group.click();
      await until("the group is closed", async () => (await group.getAttribute("aria-expanded")) === "false");
      const folds = new URL(page.url()).searchParams.get("fold");
      expect(folds).toBeTruthy();
      const many = (text: string) => Number(/×([\d,]+)/.exec(text)?.[1]?.replaceAll(",", "") ?? 0);
      const was = many(await textOf(group));
      await until("its number grows", async () => many(await textOf(group)) > was);
      expect(await group.getAttribute("aria-expanded")).toBe("false");
      await page.reload();
      await until("it is closed after a reload", async () => (await group.getAttribute("aria-expanded")) === "false");
      expect(new URL(page.url()).searchParams.get("fold")).toBe(folds);
    });
  });

  test("a run that grows moves nothing: no layout shift, the same scroll, the same selection", async () => {
    const made = await world.make("growing 260");
    const first = await stepOf(plane, made.run, "has ten calls", (step) => step.name === "bulk.leaf");
    await until("thirty calls", async () => (await stepsOf(plane, made.run)).length > 40);
    await on(async ({ page }) => {
      await openRun(page, made.run, `view=list&fold=none&step=${first.id}`);
      await panel(page).getByRole("heading", { level: 2 }).waitFor();
      await rows(page).first().waitFor();
      await grid(page).evaluate((element) => { element.scrollTop = 200; });
      const shifts = await shiftsFrom(page);
      const before = (await stated(page)).steps;
      const top = await rows(page).nth(12).getAttribute("data-step");
      const y = (await rows(page).nth(12).boundingBox())?.y;
      await until("sixty more steps", async () => (await stated(page)).steps > before + 60, 60_000);
      expect((await row(page, top ?? "").boundingBox())?.y).toBe(y);
      expect(await grid(page).evaluate((element) => element.scrollTop)).toBe(200);
      expect(new URL(page.url()).searchParams.get("step")).toBe(first.id);
      expect((await shifts()).reduce((sum, shift) => sum + shift.value, 0)).toBeLessThan(0.005);
    });
  });

  test("a run goes from its call to its end without a reload", async () => {
    const called = await plane.call("trip.plan", { city: "Metz", days: 7, person: false });
    await on(async ({ page }) => {
      await openRun(page, called.run_id, "view=time&fold=none");
      await page.locator("main .state-mark[data-state=succeeded]").first().waitFor({ timeout: 60_000 });
      const told = await stepsOf(plane, called.run_id);
      await until("each row is as the plane tells it", async () => {
        const shown = await rows(page).evaluateAll((all) => all.map((each) => [(each as HTMLElement).dataset.step, (each as HTMLElement).dataset.state]));
        return shown.length === told.length && shown.every(([id, state]) => told.find((step) => step.id === id)?.state === state);
      });
    });
  });
});

test("two runs compared: pairs, differences, and the lines of their payloads", async () => {
  await on(async ({ page }) => {
    await page.goto(`/ui/compare?a=${of("failed")}&b=${of("restarted")}`);
    const pairs = page.getByRole("treegrid", { name: "Pairs of steps" });
    await pairs.waitFor();
    const says = page.getByText(/\d+ pairs?, \d+ differ/);
    await until("the payloads are compared", async () => (await pairs.getByText("being compared").count()) === 0);
    const [, all = "0", differ = "0"] = /(\d+) pairs?, (\d+) differ/.exec(await textOf(says)) ?? [];
    expect(Number(differ)).toBeGreaterThan(0);
    expect(Number(differ)).toBeLessThan(Number(all));
    await page.keyboard.press(">");
    await page.getByRole("region", { name: "Payloads of the pair" }).waitFor();
    await shot(page, "compare");
    await page.keyboard.press("d");
    await until("only differences", async () => (await pairs.locator("[role=rowgroup] > [role=row]").count()) === Number(differ));
    await page.keyboard.press("s");
    await until("swapped", () => new URL(page.url()).searchParams.get("a") === of("restarted"));
    expect(await accessibility(page)).toEqual([]);
  });
});

describe("for every eye", () => {
  const views: View[] = ["tree", "time", "list"];
  const cases = (Object.keys(WIDTHS) as (keyof typeof WIDTHS)[]).flatMap((width) => (["light", "dark"] as Theme[]).map((theme) => ({ width, theme })));
  test.each(cases)("$width, $theme: no serious finding, nothing wider than the window", async ({ width, theme }) => {
    const steps = await stepsOf(plane, of("trip"));
    const asks = steps.find((step) => step.name === "budget.approve");
    await on(async ({ page }) => {
      for (const view of width === "phone" ? (["list"] as View[]) : views) {
        await openRun(page, of("trip"), `view=${view}`);
        if (view !== "tree") await rows(page).first().waitFor();
        else await page.locator(".react-flow__node").first().waitFor();
        expect(await accessibility(page), view).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), view).toBeLessThanOrEqual(0);
        await shot(page, `run-${view}-${width}-${theme}`, false);
      }
      await openRun(page, of("trip"), `view=${width === "phone" ? "list" : "time"}&step=${asks?.id}`);
      await panel(page).getByRole("heading", { level: 2 }).waitFor();
      await panel(page).getByRole("region", { name: "Evidence" }).waitFor();
      expect(await accessibility(page), "panel").toEqual([]);
      await shot(page, `run-panel-${width}-${theme}`, false);
    }, { width: WIDTHS[width], theme, touch: width === "phone" });
  });

  test("pictures through eyes that see fewer colours", async () => {
    await on(async ({ page, context }) => {
      const session = await context.newCDPSession(page);
      for (const run of ["trip", "cancelled", "failed"] as const) {
        await openRun(page, of(run), "view=time&fold=none");
        await rows(page).first().waitFor();
        for (const type of ["protanopia", "deuteranopia", "tritanopia"] as const) {
          await session.send("Emulation.setEmulatedVisionDeficiency", { type });
          await shot(page, `run-${run}-${type}`, false);
        }
        // Told apart without colour: each state of this run has a shape of its own.
        const shapes = await rows(page).evaluateAll((all) => all.map((each) => [(each as HTMLElement).dataset.state ?? "", each.querySelector("svg.mark")?.innerHTML ?? ""]));
        const byState = new Map(shapes.map(([state, shape]) => [state, shape]));
        expect(new Set(byState.values()).size).toBe(byState.size);
      }
    });
  });
});
