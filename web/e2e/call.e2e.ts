// Calling a function from its form: what is typed is what is sent, digit by digit; the plane's
// refusal stands at its field; the result is there without leaving the page. And the agent's page.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Watched, shot } from "./harness/browser";
import type { Plane } from "./harness/plane";
import { Scene, end, walk } from "./harness/scene";
import { until } from "./harness/waiting";
import type { World } from "./harness/world";

type Agent = { state: string; slots: { cap: number | null }; functions: { id: string }[]; hold: object | null };
let plane: Plane;
let world: World;
let watched: Watched;
let page: Page;
const agent = () => plane.ask<Agent>("/api/v1/nodes/weather");

beforeAll(async () => {
  ({ plane, world, watched, page } = await Scene.begin({ agents: ["weather", "hotel"] }));
});
afterAll(end);

describe("the form of a call", () => {
  test("sends what was typed, once for two clicks, and shows what came of it", async () => {
    await walk(page, "/ui/agents/weather/call/lookup");
    await page.getByRole("textbox", { name: /city/ }).fill("Lyon");
    await page.getByRole("textbox", { name: /day/ }).or(page.getByRole("spinbutton", { name: /day/ })).first().fill("3");
    await page.getByRole("button", { name: /^Send/ }).dblclick();
    const result = page.getByRole("region", { name: "What came of it" });
    await until("it succeeded, in place", async () => (await result.locator(".state-mark[data-state=succeeded]").count()) > 0);
    const { executions } = await plane.ask<{ executions: { execution_id: string; target?: string }[] }>("/api/v1/executions?agent=weather");
    expect(executions.length, "two clicks, one call").toBe(1);
    expect(page.url()).toContain(executions[0]?.execution_id);
    await result.getByText("celsius").first().waitFor();
    await shot(page, "call-result", false);
    watched.clean();
  });

  test("what the plane refuses is said at its field, and nothing typed is lost", async () => {
    await walk(page, "/ui/agents/weather/call/lookup");
    const city = page.getByRole("textbox", { name: /city/ });
    await city.fill("Graz");
    await page.route("**/api/v1/execute/**", (route) => route.fulfill({
      status: 400, contentType: "application/json",
      body: JSON.stringify({ error: "invalid_request", error_category: "bad_request", message: "input.city: no such city", details: { field: "input.city" } }),
    }));
    await page.getByRole("button", { name: /^Send/ }).click();
    await page.getByText("no such city").first().waitFor();
    const near = await page.getByText("no such city").first().evaluate((says) => says.closest("div")?.parentElement?.textContent ?? "");
    expect(near).toContain("city");
    expect(await city.inputValue()).toBe("Graz");
    await shot(page, "call-refused", false);
    await page.unroute("**/api/v1/execute/**");
    watched.forgive(/400/);
    watched.clean();
  });

  test("integers beyond 2^53 go out as they were typed", async () => {
    await walk(page, "/ui/agents/weather/call/slow");
    await page.getByRole("button", { name: "JSON", exact: true }).click();
    await page.getByRole("textbox", { name: /Input/ }).fill('{"seconds": 0, "n": 9223372036854775807}');
    const sent = page.waitForRequest((request) => request.method() === "POST" && request.url().includes("/execute/"));
    await page.keyboard.press("Control+Enter");
    expect((await sent).postData()).toContain("9223372036854775807");
    const result = page.getByRole("region", { name: "What came of it" });
    await result.getByText("9223372036854775807").first().waitFor();
    watched.clean();
  });
});

describe("an agent", () => {
  test("offers what it registered, and its cap is changed and taken back", async () => {
    await walk(page, "/ui/agents/weather");
    const { functions } = await agent();
    await page.getByRole("heading", { name: `Functions · ${functions.length}` }).waitFor();
    await page.getByRole("button", { name: /^Cap/ }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox").fill("2");
    await dialog.getByRole("button", { name: "Cap" }).dblclick();
    await until("the plane has the cap", async () => (await agent()).slots.cap === 2);
    await page.getByRole("button", { name: "Undo" }).first().click();
    await until("it is as before", async () => (await agent()).slots.cap !== 2);
    watched.clean();
  });

  test("that goes away is down on the page by itself, and the form says what would happen", async () => {
    await walk(page, "/ui/agents/hotel");
    const mark = page.locator(".crumbs .state-mark");
    expect(await mark.getAttribute("data-state")).toBe("active");
    await world.say("goodbye hotel");
    await until("the page says down", async () => (await mark.getAttribute("data-state")) === "down");
    expect(await page.title()).toContain("✕ hotel");
    await page.goto("/ui/agents/hotel/call/search");
    await page.getByText(/node_unavailable/).first().waitFor();
    expect(await page.getByRole("button", { name: /^Send/ }).getAttribute("aria-disabled")).toBeNull();
    await shot(page, "call-down", false);
    watched.clean();
  });
});
