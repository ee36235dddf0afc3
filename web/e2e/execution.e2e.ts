// The story of one execution: every tab, hostile and huge content, and each act from its button to
// what it did, on real runs.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Locator, Page } from "playwright-core";
import { type Watched, accessibility, closeBrowser, open, shot } from "./harness/browser";
import { Plane } from "./harness/plane";
import { openRun, panel, stepOf, stepsOf, textOf } from "./harness/run-page";
import { until } from "./harness/waiting";
import { type Made, World } from "./harness/world";

let plane: Plane;
let world: World;
let runs: Record<string, Made>;

beforeAll(async () => {
  plane = await Plane.start();
  ({ world, runs } = await World.start(plane, { key: await plane.ownerKey(), agents: ["trip", "bulk", "geo", "weather", "hotel", "budget", "mail", "report"], runs: ["failed", "hostile", "done"] }));
});
afterAll(async () => {
  await closeBrowser();
  await world?.close();
  await plane?.close();
});

async function on<T>(look: (watched: Watched) => Promise<T>, options: Parameters<typeof open>[1] = {}): Promise<T> {
  // What an operator may do is asked of one.
  const watched = await open(plane.url, { key: await plane.ownerKey(), ...options });
  try {
    const seen = await look(watched);
    watched.clean();
    return seen;
  } finally {
    await watched.close();
  }
}

const of = (kind: string): Made => runs[kind] ?? { run: "", execution: "" };
const openStep = async (page: Page, made: { run: string; execution: string }, tab = "") => {
  await openRun(page, made.run, `view=list&step=${made.execution}${tab && `&tab=${tab}`}`);
  await panel(page).getByRole("heading", { level: 2 }).waitFor();
};
const stateOf = async (execution: string): Promise<string> => (await plane.ask<{ state: string }>(`/api/v1/executions/${execution}`)).state;
const untilState = (execution: string, state: string) => until(`${execution} is ${state}`, async () => (await stateOf(execution)) === state);

/** The text of the whole page, what is only read out included. */
const whole = (page: Page): Promise<string> => page.locator("body").evaluate((body) => body.textContent ?? "");

describe("hostile content is text, exact, and nothing of it acts", () => {
  const wanted = ["</script><script>window.__canary=1</script>", '<img src=x onerror="window.__canary=2">', "\\u001b[31mred\\u001b[0m", "\\u202egnp.exe\\u202c", "9223372036854775807", "javascript:alert(1)"];

  async function harmless(page: Page): Promise<void> {
    expect(await page.evaluate(() => (window as unknown as { __canary?: number }).__canary)).toBeUndefined();
    expect(await page.locator("img[src=x]").count()).toBe(0);
    expect(await page.locator("main script").count()).toBe(0);
    // What turns the direction of text or moves a terminal never reaches the page as itself.
    expect(await whole(page)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    for (const link of await page.locator("a[href]").all()) expect(await link.getAttribute("href")).not.toMatch(/^\s*javascript:/i);
  }

  test("in each tab of the panel", async () => {
    await on(async ({ page }) => {
      await openStep(page, of("hostile"));
      for (const tab of ["Input", "Output", "Logs", "Notes", "Events", "Raw", "Attempts", "Why"]) {
        await panel(page).getByRole("tab", { name: new RegExp(`^${tab}`) }).click();
        await panel(page).getByRole("tab", { name: new RegExp(`^${tab}`), selected: true }).waitFor();
        if (["Input", "Output", "Logs", "Notes"].includes(tab)) {
          const said = await until(`${tab} shows it`, async () => { const text = await whole(page); return text.includes(wanted[0] ?? "") ? text : undefined; });
          for (const part of wanted) expect(said, tab).toContain(part);
        }
        await harmless(page);
        await shot(page, `hostile-${tab.toLowerCase()}`, false);
      }
      // The number that no double holds, from its own field.
      await panel(page).getByRole("tab", { name: /^Output/ }).click();
      await panel(page).getByText("9223372036854775807", { exact: true }).first().waitFor();
      await panel(page).getByRole("button", { name: "text", exact: true }).click();
      const stored = panel(page).getByLabel("Result, as stored");
      await until("the stored text has it too", async () => (await stored.evaluate((box) => box.textContent ?? "")).replaceAll(/\s|↪/g, "").includes('"big":9223372036854775807'));
      await harmless(page);
    });
  });

  test("in an error, in the lists, in filters and in the address", async () => {
    const failed = (await plane.ask<{ executions: { execution_id: string; run_id: string; function: string }[] }>("/api/v1/executions?function=hostile_error")).executions[0];
    expect(failed).toBeDefined();
    await on(async ({ page }) => {
      await openStep(page, { run: failed?.run_id ?? "", execution: failed?.execution_id ?? "" }, "output");
      await until("the error is shown", async () => (await whole(page)).includes(wanted[0] ?? ""));
      await harmless(page);
      await page.goto("/ui/runs");
      await until("the list shows it", async () => (await whole(page)).includes("onerror="));
      await harmless(page);
      await page.goto(`/ui/runs?q=${encodeURIComponent(wanted[1] ?? "")}&label=${encodeURIComponent("session=<img src=x onerror=alert(1)>")}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await harmless(page);
      await page.goto(`/ui/runs/${of("hostile").run}?step=${encodeURIComponent("<img src=x onerror=window.__canary=3>")}&tab=javascript:alert(1)&fold=%3Cscript%3E&only=%3Csvg/onload=alert(1)%3E`);
      await page.locator("[data-counts]").or(page.getByRole("alert")).first().waitFor();
      await harmless(page);
    }).catch((error: unknown) => {
      // The address names a step that is not there: its 404 is the browser's to report.
      if (!/status of 404|status of 400/.test(String(error)) || /error:|another origin|Content Security/.test(String(error))) throw error;
    });
  });

  test("no attempt secret and no key is in the page, its address or its storage", async () => {
    await on(async ({ page }) => {
      const seen: string[] = [];
      page.on("response", (answer) => {
        if (answer.url().includes("/api/v1/")) void answer.text().then((text) => seen.push(text), () => undefined);
      });
      await openStep(page, of("done"), "attempts");
      await panel(page).getByRole("list", { name: "Attempts" }).waitFor();
      await panel(page).getByRole("tab", { name: /^Raw/ }).click();
      const key = await plane.ownerKey();
      const storage = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href]));
      for (const text of [await whole(page), storage, ...seen]) {
        expect(text).not.toContain(key);
        expect(text).not.toMatch(/attempt_secret|attempt_token|"secret"/);
      }
    });
  });
});

describe("what is large opens like what is small", () => {
  test("a result of 63 MiB: its beginning, its size, a download, and a page that stays quick", async () => {
    const big = await world.make("big 63");
    await on(async ({ page }) => {
      let read = 0;
      page.on("response", (answer) => { if (answer.url().includes("/payload/")) read += Number(answer.headers()["content-length"] ?? 0); });
      const began = performance.now();
      await openStep(page, big, "output");
      await panel(page).getByText(/first 64\.0 KiB of 6[23]\.\d+ MiB|first 64 KiB of 6[23](\.\d+)? MiB/).waitFor();
      console.info(`63 MiB result: shown after ${Math.round(performance.now() - began)} ms, ${read} bytes read`);
      expect(read).toBeLessThanOrEqual(512 * 1024);
      expect(await page.locator("*").count()).toBeLessThan(6_000);
      expect(await panel(page).getByRole("link", { name: "download" }).first().getAttribute("href")).toContain(`/executions/${big.execution}/payload/result`);
      await panel(page).getByRole("button", { name: "show more" }).click();
      await panel(page).getByText(/first 128(\.0)? KiB/).waitFor();
      const pressed = performance.now();
      await page.keyboard.press("w");
      await panel(page).getByRole("tab", { name: /^Why/, selected: true }).waitFor();
      expect(performance.now() - pressed).toBeLessThan(2_000);
      await shot(page, "result-63-mib", false);
    });
  });

  test("10,000 log lines: a window of them, counted, filtered, walked by keys", async () => {
    const made = await world.make("logs 10000");
    await until("they are written", async () => (await stateOf(made.execution)) === "succeeded", 60_000);
    await on(async ({ page }) => {
      await openStep(page, made, "logs");
      const logs = panel(page).getByRole("region", { name: "Logs", exact: true });
      // The plane keeps so many of one execution, the newest, and counts what it dropped.
      const counted = async () => {
        const told = await plane.ask<{ total: number; dropped: number }>(`/api/v1/executions/${made.execution}/logs?limit=1`);
        expect(told.dropped).toBeGreaterThan(0);
        expect(told.total + told.dropped).toBeGreaterThanOrEqual(10_000);
        return [`${told.total.toLocaleString("en-US")} lines`, `${told.dropped.toLocaleString("en-US")} dropped`];
      };
      await until("as many are counted as the plane tells", async () => {
        const said = await textOf(logs);
        return (await counted()).every((each) => said.includes(each));
      });
      expect(await page.locator("*").count()).toBeLessThan(6_000);
      await logs.getByRole("searchbox").fill("line 77");
      await until("filtered", async () => /[\d,]+ of [\d,]+/.test(await textOf(logs)));
      await logs.getByLabel("Log lines").focus();
      await page.keyboard.press("ArrowDown");
      await panel(page).getByRole("region", { name: /^Line \d+/ }).waitFor();
      expect(await accessibility(page)).toEqual([]);
      await shot(page, "logs-10000", false);
    });
  }, 240_000);
});

/** What the plane says an act would do. */
type Would = { dry_run: boolean; text: string; total: number; kept: number; told: string[] };

/** Counts the requests that change something, and lets a test wait for none. */
function changes(page: Page): string[] {
  const sent: string[] = [];
  page.on("request", (request) => {
    if (request.method() !== "GET" && !request.url().includes("dry_run=true")) sent.push(new URL(request.url()).pathname);
  });
  return sent;
}

describe("acts: the consequence before, one change, the receipt after", () => {
  const acts = (page: Page): Locator => panel(page).getByRole("group", { name: "Acts" });
  const head = (page: Page): Locator => page.locator("main").first();

  test("cancel one: the popover says what the plane says; two clicks are one change", async () => {
    const made = await world.make("slow 2");
    const step = await stepOf(plane, made.run, "runs", (each) => each.name === "weather.slow" && each.state === "running");
    await until("all of its calls run", async () => (await stepsOf(plane, made.run)).filter((each) => each.state === "running").length === 3);
    const would = await plane.ask<Would>(`/api/v1/executions/${step.id}/cancel?dry_run=true`, {});
    expect(would.dry_run).toBe(true);
    expect(await stateOf(step.id)).toBe("running");
    await on(async ({ page }) => {
      const sent = changes(page);
      await openStep(page, { run: made.run, execution: step.id });
      await acts(page).getByRole("button", { name: /^Cancel/ }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(would.text).waitFor();
      expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Keep");
      expect(sent).toEqual([]);
      // Escape backs out of the popover, not of the panel.
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      await panel(page).waitFor();
      expect(await stateOf(step.id)).toBe("running");
      await acts(page).getByRole("button", { name: /^Cancel/ }).click();
      await dialog.getByText(would.text).waitFor();
      await shot(page, "act-cancel", false);
      await dialog.getByRole("button", { name: "Cancel", exact: true }).dblclick();
      // In the button's place, or, where that act is gone with the state, among the messages.
      await page.getByText(/ended 1/).filter({ visible: true }).first().waitFor();
      await untilState(step.id, "cancelled");
      expect(sent).toEqual([`/api/v1/executions/${step.id}/cancel`]);
      await shot(page, "act-cancelled", false);
    });
  });

  test("cancel a run: as many as were told before, and each row says so without a reload", async () => {
    const made = await world.make("slow 3");
    await until("three calls run", async () => (await stepsOf(plane, made.run)).filter((step) => step.name === "weather.slow" && step.state === "running").length === 3);
    const would = await plane.ask<Would>(`/api/v1/workflows/${made.run}/cancel-tree?dry_run=true`, {});
    expect(would.total).toBe(4);
    await on(async ({ page }) => {
      await openRun(page, made.run, "view=list&fold=none");
      await page.keyboard.press("Shift+X");
      const dialog = page.getByRole("dialog");
      await dialog.getByText(would.text).waitFor();
      await dialog.getByRole("button", { name: "Cancel", exact: true }).click();
      await page.getByText(`ended ${would.total}`).filter({ visible: true }).first().waitFor();
      await page.locator("main .state-mark[data-state=cancelled]").first().waitFor();
      await until("every row is cancelled", async () => (await page.locator("[role=row][data-state=cancelled]").count()) === would.total);
      expect((await stepsOf(plane, made.run)).map((step) => step.state)).toEqual(Array(would.total).fill("cancelled"));
    });
  });

  test("a wide cancel wants the name typed", async () => {
    const made = await world.make("slow 24");
    await until("its calls are there", async () => (await stepsOf(plane, made.run)).length === 25);
    await on(async ({ page }) => {
      await openRun(page, made.run, "view=list");
      await until("the page knows all of them", async () => /25 steps/.test(await textOf(head(page))));
      await page.keyboard.press("Shift+X");
      const dialog = page.getByRole("dialog");
      const verb = dialog.getByRole("button", { name: "Cancel", exact: true });
      await dialog.getByText(/cannot be undone/).waitFor();
      await dialog.getByRole("listitem").first().waitFor();
      expect(await verb.isDisabled()).toBe(true);
      await dialog.getByRole("textbox").fill("trip.slow_tree");
      await until("it can be done now", async () => await verb.isEnabled());
      await shot(page, "act-wide", false);
      await verb.click();
      await untilState(made.execution, "cancelled");
    });
  });

  test("pause and resume a run, and take a pause back", async () => {
    const made = await world.make("slow 2");
    const step = await stepOf(plane, made.run, "runs", (each) => each.name === "weather.slow" && each.state === "running");
    await on(async ({ page }) => {
      await openRun(page, made.run, "view=time&fold=none");
      await until("it may be paused", async () => (await page.getByRole("button", { name: /^Pause/ }).first().getAttribute("aria-disabled")) === null);
      await page.keyboard.press("Shift+P");
      await page.locator(`[role=row][data-step="${step.id}"][data-state=paused]`).waitFor();
      await page.getByRole("button", { name: "Undo" }).first().click();
      await page.locator(`[role=row][data-step="${step.id}"][data-state=running]`).waitFor();
      await page.locator(`[role=row][data-step="${step.id}"] .b-paused`).first().waitFor({ state: "attached" });
      expect(await stateOf(step.id)).toBe("running");
    });
    await plane.ask(`/api/v1/workflows/${made.run}/cancel-tree`, {});
  });

  test("restart: what is reused and what runs is what the plane says, and comes to pass", async () => {
    const source = of("failed");
    type Restart = { dry_run: boolean; reuses: number; runs: number; text: string };
    const would = await plane.ask<Restart>(`/api/v1/executions/${source.execution}/restart?dry_run=true`, { scope: "workflow", reuse: "succeeded-before" });
    expect(would.dry_run).toBe(true);
    await on(async ({ page }) => {
      const sent = changes(page);
      await openRun(page, source.run, "view=list");
      await page.keyboard.press("Shift+R");
      const dialog = page.getByRole("dialog");
      await dialog.getByText(`reuses ${would.reuses}, runs ${would.runs}`).first().waitFor();
      expect(sent).toEqual([]);
      await shot(page, "act-restart", false);
      await dialog.getByRole("button", { name: "Restart", exact: true }).click();
      const receipt = page.locator(".act").getByRole("status").filter({ hasText: "restarted as" }).first();
      await receipt.waitFor();
      expect(sent).toHaveLength(1);
      await receipt.getByRole("link").first().click();
      await until("the new run", () => /\/runs\/run_/.test(page.url()) && !page.url().includes(source.run));
      await page.getByText("restart of").first().waitFor();
      const restarted = /run_[0-9A-Za-z]+/.exec(page.url())?.[0] ?? "";
      await until("it ended", async () => (await plane.ask<{ state: string }>(`/api/v1/runs/${restarted}`)).state === "failed");
      const steps = await stepsOf(plane, restarted);
      expect(steps.filter((step) => (step.flags & 16) !== 0).length).toBe(would.reuses);
    });
  });

  test("fork with an edited input: what was typed is what is sent, digit by digit", async () => {
    const source = of("done");
    await on(async ({ page }) => {
      await openStep(page, source);
      await acts(page).getByRole("button", { name: /^Fork/ }).click();
      const dialog = page.getByRole("dialog");
      const field = dialog.getByRole("textbox", { name: "Input, JSON" });
      await field.waitFor();
      await field.fill("{ not json");
      await dialog.getByText(/at character/).waitFor();
      await field.fill('{"city": "Graz", "days": 7, "person": false, "n": 9223372036854775807}');
      await dialog.getByRole("button", { name: "Fork", exact: true }).click();
      const receipt = page.locator(".act").getByRole("status").filter({ hasText: "forked as" }).first();
      await receipt.or(dialog.getByText(/unknown|additional|refused/i)).first().waitFor();
      await receipt.getByRole("link").first().click();
      await until("the new run", () => /\/runs\/run_/.test(page.url()) && !page.url().includes(source.run));
      const forked = /run_[0-9A-Za-z]+/.exec(page.url())?.[0] ?? "";
      const root = (await stepsOf(plane, forked))[0];
      const stored = await fetch(`${plane.url}/api/v1/executions/${root?.id}/payload/input`, { headers: { "x-api-key": await plane.ownerKey() } });
      expect(await stored.text()).toContain("9223372036854775807");
      await page.keyboard.press("Escape");
    });
  });

  test.each([
    ["Approve", "approved", "succeeded"],
    ["Refuse", "rejected", "failed"],
    ["Request changes", "request_changes", null],
  ] as const)("%s: the decision of a person", async (verb, decision, ends) => {
    const made = await world.make("trip");
    const asks = await stepOf(plane, made.run, "asks", (step) => step.name === "budget.approve" && step.state === "waiting");
    await on(async ({ page }) => {
      const sent = changes(page);
      await openStep(page, { run: made.run, execution: asks.id });
      await acts(page).getByRole("button", { name: new RegExp(`^${verb}`) }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("textbox").fill(`because <b>${decision}</b>`);
      await shot(page, `act-${decision}`, false);
      await dialog.getByRole("button", { name: verb, exact: true }).dblclick();
      await until("it was decided", async () => (await stateOf(asks.id)) !== "waiting");
      await until("one request", () => sent.length > 0);
      expect(sent).toEqual([`/api/v1/executions/${asks.id}/approval-response`]);
      if (ends) {
        await untilState(made.execution, ends);
        await page.locator(`main .state-mark[data-state=${ends}]`).first().waitFor();
      } else {
        await until("it says so", async () => /changes requested/.test(await whole(page)));
      }
    });
  });

  test("what why names can be done there, and a thing that ended is not cancelled twice", async () => {
    const made = await world.make("slow 1");
    const step = await stepOf(plane, made.run, "runs", (each) => each.name === "weather.slow" && each.state === "running");
    await on(async ({ page }) => {
      await openStep(page, { run: made.run, execution: step.id }, "why");
      const change = panel(page).getByRole("region", { name: "Would change it" });
      await change.getByRole("button", { name: /^Cancel/ }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: "Cancel", exact: true }).waitFor();
      await plane.ask(`/api/v1/executions/${step.id}/cancel`, {});
      await page.locator("[data-panel] .state-mark[data-state=cancelled]").first().waitFor();
      await until("there is nothing to cancel", async () => (await acts(page).getByRole("button", { name: /^Cancel/ }).count()) === 0);
    });
  });

  test("every act is there without a mouse, and the focus comes back", async () => {
    const made = await world.make("slow 1");
    const step = await stepOf(plane, made.run, "runs", (each) => each.name === "weather.slow" && each.state === "running");
    await on(async ({ page }) => {
      await openStep(page, { run: made.run, execution: step.id });
      const cancel = acts(page).getByRole("button", { name: /^Cancel/ });
      await cancel.focus();
      await page.keyboard.press("Enter");
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: "Cancel", exact: true }).waitFor();
      await until("it can be done", async () => await dialog.getByRole("button", { name: "Cancel", exact: true }).isEnabled());
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      expect(await cancel.evaluate((element) => element === document.activeElement)).toBe(true);
      await page.keyboard.press("Enter");
      await until("it can be done", async () => await dialog.getByRole("button", { name: "Cancel", exact: true }).isEnabled());
      await page.keyboard.press("Tab");
      while ((await page.evaluate(() => document.activeElement?.textContent)) !== "Cancel") await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await untilState(step.id, "cancelled");
    });
  });
});
