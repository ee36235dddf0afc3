// A plane that has stopped is not a plane with nothing in it: on every list what was known stays,
// no number becomes 0, nothing turns green, and each says as of when. Acts wait, with the reason.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { type Watched, shot } from "./harness/browser";
import { linked } from "./harness/live";
import type { Plane } from "./harness/plane";
import { Scene, UNREACHED, end, walk } from "./harness/scene";
import { until } from "./harness/waiting";

const PATHS = ["/ui/", "/ui/agents", "/ui/fleet", "/ui/queues", "/ui/runs?t=all", "/ui/health", "/ui/agents/weather", "/ui/usage"];
let plane: Plane;
let watched: Watched;

beforeAll(async () => {
  ({ plane, watched } = await Scene.begin({ agents: ["weather", "mail"] }));
  await plane.ask("/api/v1/hold", { agent: "mail", reason: "the provider is down" });
  for (let n = 0; n < 3; n += 1) await plane.call("mail.send", { to: "a", subject: `b${n}` });
  for (let day = 6; day < 9; day += 1) await plane.call("weather.lookup", { city: "Lyon", day });
  await plane.ask("/api/v1/fleet/enrollments", { name: "edge-1", max_workers: 2 });
});
afterAll(end);

/** What a page says of states and numbers; ages and what says as of when are left out. */
const said = (page: Page) => page.evaluate(() => {
  const main = (document.querySelector("main") as HTMLElement).cloneNode(true) as HTMLElement;
  for (const each of main.querySelectorAll("time, [data-live], [role=alert], [role=status], header .as-of")) each.remove();
  const texts = [...main.querySelectorAll<HTMLElement>("*")].filter((each) => each.children.length === 0).map((each) => (each.textContent ?? "").trim());
  return {
    marks: [...main.querySelectorAll<HTMLElement>(".state-mark")].map((mark) => mark.dataset.state ?? "?"),
    zeros: texts.filter((text) => /^0( |$)/.test(text)).length,
    numbers: texts.filter((text) => /^[\d,]+$/.test(text) && text !== "0").length,
    rows: main.querySelectorAll(".list-row, tbody tr, .need").length,
  };
});

test("what was known stays on each page, and says its age", async () => {
  const tabs: { path: string; page: Page; before: Awaited<ReturnType<typeof said>> }[] = [];
  for (const path of PATHS) {
    const page = tabs.length === 0 ? watched.page : await watched.context.newPage();
    await walk(page, path);
    await linked(page);
    tabs.push({ path, page, before: await said(page) });
  }
  // What arrives last may still change what was read first.
  for (const tab of tabs) tab.before = await said(tab.page);
  await plane.kill9();
  for (const { path, page, before } of tabs) {
    await linked(page, ["offline"], 60_000);
    // Asked for again while there is no plane: a failed request is not an empty answer.
    await page.keyboard.press("u");
    await page.getByText(/The plane does not answer/).first().waitFor();
    const after = await said(page);
    // Of the plane itself nobody knows now; of everything else the last word stays.
    const marks = path === "/ui/health" ? before.marks.map((mark) => (mark === "online" ? "unknown" : mark)) : before.marks;
    expect(after.marks, path).toEqual(marks);
    expect(after.rows, path).toBe(before.rows);
    expect(after.zeros, `${path}: zeros`).toBeLessThanOrEqual(before.zeros);
    expect(after.numbers, `${path}: numbers`).toBeGreaterThanOrEqual(before.numbers);
    await shot(page, `stopped-${path.replaceAll(/\W+/g, "-")}`, false);
  }
  const agent = tabs.find((tab) => tab.path === "/ui/agents/weather")?.page;
  expect(await agent?.getByRole("button", { name: /^Hold/ }).getAttribute("aria-disabled")).toBe("true");
  expect(await agent?.getByRole("button", { name: /^Hold/ }).getAttribute("title")).toContain("does not answer");
  // A page opened now knows nothing, and says so.
  const [first] = tabs;
  await first?.page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: /Queues/ }).click();
  await first?.page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: /Fleet/ }).click();
  await first?.page.getByRole("alert").or(first.page.getByText(/still waiting for|as of/)).first().waitFor();
  expect(await first?.page.locator("main .state-mark[data-state=online]").count()).toBe(0);
  await plane.again();
  for (const { path, page } of tabs.slice(1)) {
    await linked(page, ["live", "resynced"], 60_000);
    await until(`${path}: nothing says that it is old`, async () => (await page.getByText(/The plane does not answer/).count()) === 0);
  }
  watched.forgive(UNREACHED);
  watched.clean();
}, 240_000);
