// The lists and the overview tell the truth: what a page counts is what its link opens, what a list
// says of a thing is what its detail and the plane say, and all of it follows without a reload.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changes, dialog, ready } from "./harness/act";
import { type Watched, WIDTHS, shot } from "./harness/browser";
import { linked } from "./harness/live";
import { settled } from "./harness/look";
import type { Plane } from "./harness/plane";
import { Scene, end, visit, walk } from "./harness/scene";
import { until } from "./harness/waiting";
import type { Made } from "./harness/world";

type Listed = { total: number; counts: Record<string, number>; executions: { execution_id: string; run_id: string; status: string; state?: string }[] };
let plane: Plane;
let runs: Record<string, Made>;
let watched: Watched;
let page: Page;

beforeAll(async () => {
  ({ plane, runs, watched, page } = await Scene.begin({ agents: ["trip", "weather", "geo", "hotel", "mail", "budget", "report"], runs: ["done", "failed", "timeout", "trip"] }));
  await plane.ask("/api/v1/hold", { agent: "mail", reason: "the provider is down" });
  for (let n = 0; n < 3; n += 1) await plane.ask("/api/v1/execute/async/mail.send", { input: { to: "a", subject: `b${n}` } });
  await until("the trip waits for a person", async () => (await plane.ask<{ needs: { kind: string }[] }>("/api/v1/overview")).needs.some((need) => need.kind === "approval"));
});
afterAll(end);

const rows = () => page.locator("[role=grid] .list-row");
/** How many the list says it has; of a short one without a total, how many it shows. */
const total = async () => {
  if ((await page.locator("[role=grid]").count()) === 0) return 0;
  const said = Number(await page.locator("[role=grid]").getAttribute("aria-rowcount"));
  return said < 0 ? rows().count() : said - 1;
};
const digits = (text: string | null) => Number(/([\d,]+)\s*$/.exec(text?.trim() ?? "")?.[1]?.replaceAll(",", ""));

describe("overview", () => {
  test("what needs a person is there, and leads to it", async () => {
    await walk(page, "/ui/");
    const overview = await plane.ask<{ needs: { text: string }[]; needs_total: number }>("/api/v1/overview");
    await page.getByRole("region", { name: "Needs you" }).waitFor();
    expect(await page.locator(".need").count()).toBe(overview.needs_total);
    expect(await page.title()).toContain(`${overview.needs_total} need you`);
    await page.locator(".need", { hasText: "budget" }).getByRole("link").first().click();
    await page.waitForURL(/runs\/run_|executions\/exec_/);
    expect(page.url()).toContain("/ui/");
  });

  test("each count of what is held up and what failed equals the list that it opens", async () => {
    await walk(page, "/ui/");
    const links = await page.locator("section[aria-label='Held up'] a, section[aria-label^='Failed'] a").all();
    const each = await Promise.all(links.map(async (link) => ({ to: await link.getAttribute("href"), text: (await link.textContent()) ?? "", bold: await link.locator("b").first().textContent({ timeout: 200 }).catch(() => null) })));
    expect(each.length).toBeGreaterThanOrEqual(2);
    const { held, failed } = await plane.ask<{ held: { causes: { text: string; count: number; query: string | null }[] }; failed: { categories: { category: string; count: number; query: string }[] } }>("/api/v1/overview");
    for (const { to } of each) {
      await walk(page, to ?? "");
      const shown = await total();
      const query = new URLSearchParams(new URL(page.url()).search);
      const asked = [...held.causes, ...failed.categories].find((one) => one.query !== null && [...new URLSearchParams(one.query)].every(([key, value]) => key === "since" || [...query.values()].includes(value)) && (!query.get("category") || one.query?.includes(`category=${query.get("category")}`)));
      expect(asked, `the plane's count for ${to}`).toBeDefined();
      expect(shown, `what ${to} lists`).toBe(asked?.count);
      expect(await rows().count()).toBe(Math.min(shown, await rows().count()));
    }
  });

  test("the words of agents and nodes lead to lists of exactly so many", async () => {
    await walk(page, "/ui/");
    const { agents } = await plane.ask<{ agents: { states: Record<string, number> } }>("/api/v1/overview");
    for (const [state, many] of Object.entries(agents.states).filter(([, many]) => many > 0)) {
      await walk(page, `/ui/agents?state=${state}`);
      expect(await rows().count(), state).toBe(many);
      for (const mark of await rows().locator(".state-mark").all()) expect(await mark.getAttribute("data-state")).toBe(state);
    }
  });

  test("a decision in place goes through, once, and its line goes", async () => {
    await walk(page, "/ui/");
    const line = page.locator(".need", { hasText: "budget" });
    const sent = changes(page, /approv/);
    await line.getByRole("button", { name: "Decide" }).click();
    await line.getByRole("button", { name: /^Approve/ }).click();
    const confirm = await ready(page, /^Approve/);
    await shot(page, "overview-decide", false);
    await confirm.dblclick();
    await until("the plane has it", async () => (await plane.ask<{ needs: { kind: string }[] }>("/api/v1/overview")).needs.every((need) => need.kind !== "approval"));
    await line.waitFor({ state: "detached" });
    expect(sent.length).toBe(1);
    await until("the call that waited has ended well", async () => {
      const { executions } = await plane.ask<{ executions: { run_id: string; status: string }[] }>("/api/v1/executions?agent=budget&limit=50");
      return executions.find((each) => each.run_id === runs.trip?.run)?.status === "succeeded";
    });
    watched.clean();
  });
});

describe("runs and executions", () => {
  test("every row says what its detail and the plane say", async () => {
    await walk(page, "/ui/runs?v=executions&t=all");
    const { executions, total: of } = await plane.ask<Listed>("/api/v1/executions?limit=100");
    expect(await total()).toBe(of ?? executions.length);
    const said = new Map(executions.map((each) => [each.execution_id, each.state ?? each.status]));
    for (const row of (await rows().all()).slice(0, 12)) {
      const id = /exec_\w{26}/.exec((await row.textContent()) ?? "")?.[0] ?? "";
      const state = await row.locator(".state-mark").first().getAttribute("data-state");
      expect(state, id).toBe(said.get(id));
      const detail = await plane.ask<{ state?: string; status: string }>(`/api/v1/executions/${id}`);
      expect(detail.state ?? detail.status).toBe(state);
    }
  });

  test("the head counts what each of its links lists", async () => {
    await walk(page, "/ui/runs?t=all");
    const links = page.locator(".crumbs a");
    const texts = await links.allTextContents();
    expect(texts.length, "open, failed, all").toBe(3);
    for (const [index, text] of texts.entries()) {
      await walk(page, "/ui/runs?t=all");
      await links.nth(index).click();
      await until(`${text} lists as many`, async () => (await total()) === digits(text));
    }
  });

  test("filters are asked of the plane, stand in the address, and survive a reload", async () => {
    await walk(page, "/ui/runs?v=executions&t=all");
    await page.getByRole("button", { name: /^state/ }).click();
    await page.getByRole("dialog").getByText("failed", { exact: true }).first().click();
    await page.waitForURL(/state=failed/);
    await page.keyboard.press("Escape");
    const failed = (await plane.ask<Listed>("/api/v1/executions?status=failed")).executions.length;
    await until("only failed ones are listed", async () => (await total()) === failed);
    await page.reload();
    await settled(page);
    expect(await total()).toBe(failed);
    for (const mark of await rows().locator(".state-mark").all()) expect(await mark.getAttribute("data-state")).toBe("failed");
  });

  test("a new run waits behind the bar, what ends changes in its place", async () => {
    await walk(page, "/ui/runs?t=all");
    await linked(page);
    const idOf = async (row: ReturnType<typeof rows>) => /run_\w{26}/.exec((await row.textContent()) ?? "")?.[0];
    const before = await idOf(rows().first());
    const many = await total();
    const { run_id: run } = await plane.ask<{ run_id: string }>("/api/v1/execute/async/weather.slow", { input: { seconds: 0 } });
    const bar = page.locator(".new-bar");
    await bar.waitFor();
    expect(await bar.textContent()).toContain("1 new");
    expect(await idOf(rows().first()), "the rows stay where they are").toBe(before);
    await page.keyboard.press("n");
    await until("the new run is first", async () => ((await rows().first().textContent()) ?? "").includes(run));
    expect(await total()).toBe(many + 1);
    const open = await plane.ask<{ run_id: string }>("/api/v1/execute/async/weather.slow", { input: { seconds: 2 } });
    await bar.waitFor();
    await page.keyboard.press("n");
    const row = rows().filter({ hasText: open.run_id });
    await until("it runs", async () => (await row.locator(".state-mark").first().getAttribute("data-state")) === "running");
    await until("it ended, without a reload", async () => (await row.locator(".state-mark").first().getAttribute("data-state")) === "succeeded");
    watched.clean();
  });

  test("several are selected by keys and cancelled together, once", async () => {
    const made = await Promise.all([1, 2].map(() => plane.ask<{ run_id: string }>("/api/v1/execute/async/weather.slow", { input: { seconds: 300 } })));
    await walk(page, "/ui/runs?state=running&q=weather.slow");
    await until("both are listed", async () => (await total()) === 2);
    const sent = changes(page, /cancel-tree$/);
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    const bulk = page.getByRole("region", { name: "Selected" });
    expect(await bulk.textContent()).toContain("2 selected");
    await bulk.getByRole("button", { name: /^Cancel/ }).click();
    await dialog(page).getByRole("textbox").fill("cancel 2");
    const verb = await ready(page, /^Cancel/);
    await shot(page, "runs-cancel-two", false);
    await verb.dblclick();
    for (const { run_id: run } of made) {
      await until(`${run} is cancelled`, async () => (await plane.ask<{ state: string }>(`/api/v1/runs/${run}`)).state === "cancelled");
    }
    expect(sent.length).toBe(2);
    watched.clean();
  });

  test("a route that fails breaks its panel alone, and Retry heals it", async () => {
    await page.route("**/api/v1/runs?**", (route) => route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ error_category: "overloaded", message: "too much at once", retry_after: 3 }) }));
    await page.goto("/ui/runs?t=all");
    await page.getByText("too much at once").first().waitFor();
    await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: /Agents/ }).waitFor();
    await shot(page, "runs-error", false);
    await page.unroute("**/api/v1/runs?**");
    await page.getByRole("button", { name: /Retry/ }).first().click();
    await rows().first().waitFor();
    watched.forgive(/503/);
    watched.clean();
  });

  test("while it loads, the list has its final place and says what it waits for", async () => {
    let answer: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route("**/api/v1/runs?**", async (route) => {
      await held;
      await route.continue();
    });
    await page.goto("/ui/runs?t=all");
    await page.getByText("still waiting for").waitFor();
    await shot(page, "runs-loading", false);
    answer();
    await rows().first().waitFor();
    await page.unroute("**/api/v1/runs?**");
  });

  test("on a phone the rows are cards, and everything that matters is in sight", async () => {
    await visit(plane, async (phone) => {
      await settled(phone.page);
      const first = phone.page.locator(".list-card").first();
      await first.waitFor();
      const box = await first.boundingBox();
      expect(box && box.x + box.width).toBeLessThanOrEqual(WIDTHS.phone);
      await phone.page.locator(".list-card a").first().click();
      await phone.page.waitForURL(/runs\/run_/);
    }, { at: "/ui/runs?t=all", width: WIDTHS.phone, height: 844, touch: true });
  });
});

describe("agents", () => {
  type Line = { id: string; state: string; evidence?: string | null; queue?: { depth: number }; window?: { calls: number; failed: number } };
  const agents = async () => (await plane.ask<{ nodes: Line[] }>("/api/v1/nodes")).nodes;

  test("each line says what its page and the plane say", async () => {
    await walk(page, "/ui/agents");
    const told = await agents();
    expect(await rows().count()).toBe(told.length);
    const states = await rows().evaluateAll((all) => Object.fromEntries(all.map((each) => [each.querySelector("a")?.textContent ?? "", each.querySelector<HTMLElement>(".state-mark")?.dataset.state])));
    expect(states).toEqual(Object.fromEntries(told.map((each) => [each.id, each.state])));
    // Why it is so, and how old that is, with each of them.
    expect(told.every((each) => each.evidence), "the plane says why").toBe(true);
    for (const title of await rows().evaluateAll((all) => all.map((each) => each.querySelector<HTMLElement>(".state-mark")?.title ?? ""))) expect(title).toMatch(/^[a-z]+ · .*(\d+(\.\d+)? ?(ms|s|m|h|min)\b|now)/);
    for (const { id, state } of told.slice(0, 3)) {
      await walk(page, `/ui/agents/${id}`);
      expect(await page.locator(".crumbs .state-mark").getAttribute("data-state"), id).toBe(state);
      expect((await plane.ask<Line>(`/api/v1/nodes/${id}`)).state, id).toBe(state);
    }
    watched.clean();
  });

  test("what ended and what failed in the last hour, and what waits: each number is what its link lists", async () => {
    const told = (await agents()).filter((each) => (each.window?.calls ?? 0) > 0 || (each.queue?.depth ?? 0) > 0);
    expect(told.some((each) => (each.window?.failed ?? 0) > 0), "somebody failed").toBe(true);
    expect(told.some((each) => (each.queue?.depth ?? 0) > 0), "somebody waits").toBe(true);
    for (const { id } of told) {
      await walk(page, "/ui/agents");
      const line = rows().filter({ has: page.getByRole("link", { name: id, exact: true }) });
      const links = await line.locator("a[href*='state='], a[href*='/queues/']").evaluateAll((all) => all.map((each) => ({ to: each.getAttribute("href") ?? "", many: Number(/^[\d,]+/.exec(each.textContent ?? "")?.[0].replaceAll(",", "")) })));
      expect(links.length, id).toBeGreaterThan(0);
      for (const { to, many } of links) {
        await walk(page, to);
        await until(`${to} lists ${many}`, async () => (await total()) === many, 10_000);
      }
    }
    watched.clean();
  });
});

test("while nothing happens, ages move and nothing else does", async () => {
  // A young one: ages of minutes move once a minute.
  await plane.call("mail.send", { to: "a", subject: "young" });
  for (const path of ["/ui/runs?t=all", "/ui/queues/mail", "/ui/agents", "/ui/health", "/ui/"]) {
    await walk(page, path);
    await linked(page);
    // All that is told apart from ages, and the ages alone.
    const said = () => page.evaluate(() => {
      const main = document.querySelector("main") as HTMLElement;
      const ages = [...main.querySelectorAll("time")].map((each) => each.textContent).join(" ");
      const still = main.cloneNode(true) as HTMLElement;
      for (const each of still.querySelectorAll("time, [data-live], .live")) each.replaceChildren();
      const texts = document.createTreeWalker(still, NodeFilter.SHOW_TEXT);
      const words: string[] = [];
      while (texts.nextNode()) words.push(texts.currentNode.textContent ?? "");
      // What goes on has taken so long: an age too.
      return { ages, still: words.join(" ").replaceAll(/(\d+ [dhm] ?)*\d+(\.\d+)? (ms|s|m|h)\b|<1 ms/g, "…") };
    });
    // A duty runs and an agent beats whether or not anybody calls: these may do so in between.
    const lively = path === "/ui/health" || path === "/ui/agents";
    // What the page was told of the young one it has shown: it has not changed for a second.
    let [before, began] = [await said(), performance.now()];
    await until(`${path}: it has come to rest`, async () => {
      const now = await said();
      if (now.still !== before.still) [before, began] = [now, performance.now()];
      return lively || performance.now() - began > 1_000;
    });
    [before, began] = [await said(), performance.now()];
    if (path === "/ui/") await until("a while has passed", () => performance.now() - began > 3_000);
    else await until(`${path}: its ages move`, async () => (await said()).ages !== before.ages, 15_000);
    if (!lively) expect((await said()).still, path).toBe(before.still);
  }
  watched.clean();
});

describe("queues", () => {
  test("what waits is what the plane says, in its order, with who holds it", async () => {
    await walk(page, "/ui/queues");
    const { queues } = await plane.ask<{ queues: { agent: string; queued: number; held: boolean }[] }>("/api/v1/queues");
    const mail = queues.find((queue) => queue.agent === "mail");
    expect(mail?.queued).toBeGreaterThanOrEqual(3);
    const line = rows().filter({ hasText: "mail" }).first();
    expect(await line.textContent()).toContain(String(mail?.queued));
    await line.getByRole("link", { name: "mail", exact: true }).click();
    await page.waitForURL(/queues\/mail/);
    await settled(page);
    const { entries } = await plane.ask<{ entries: { execution_id: string; run_id: string }[] }>("/api/v1/queues/mail");
    expect(await rows().count()).toBe(entries.length);
    for (const [index, entry] of entries.entries()) expect(await rows().nth(index).textContent()).toContain(entry.run_id);
    await shot(page, "queue-mail", false);
  });

  test("lifting the hold says how many go, wants the name, and lets exactly them go", async () => {
    await walk(page, "/ui/queues/mail");
    await page.getByRole("button", { name: /^Unhold/ }).click();
    const asks = dialog(page);
    const { queued } = await plane.ask<{ queued: number }>("/api/v1/queues/mail");
    await asks.getByText(`${queued} queued executions go out`).waitFor();
    const verb = asks.getByRole("button", { name: /^Unhold/ });
    expect(await verb.isEnabled()).toBe(false);
    await asks.getByRole("textbox").fill("mail");
    await verb.dblclick();
    await until("nothing waits any more", async () => (await rows().count()) === 0);
    await page.getByText("Nothing waits.").waitFor();
    await until("the plane has lifted it", async () => !(await plane.ask<{ agents: unknown[] }>("/api/v1/hold")).agents.length);
    watched.clean();
  });
});
