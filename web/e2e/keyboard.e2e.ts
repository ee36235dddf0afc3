// Without a mouse: every kind of act, backing out level by level, single letters off, and a focus
// that is always somewhere and always seen. Nothing here clicks.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { dialog } from "./harness/act";
import type { Watched } from "./harness/browser";
import { confirm, focused, keepsFocus, tabTo, typeName } from "./harness/keys";
import { linked } from "./harness/live";
import type { Plane } from "./harness/plane";
import { grid, openRun, panel, row, rows, stepOf, stepsOf } from "./harness/run-page";
import { Scene, end, walk } from "./harness/scene";
import { until } from "./harness/waiting";
import type { World } from "./harness/world";

let plane: Plane;
let world: World;
let watched: Watched;
let page: Page;
const stateOf = (id: string) => plane.stateOf(id);
const untilState = (id: string, state: string) => plane.untilState(id, state);
const call = (target: string, input: object) => plane.call(target, input);

beforeAll(async () => {
  ({ plane, world, watched, page } = await Scene.begin({ agents: ["trip", "weather", "budget"] }));
});
afterAll(end);

describe("acts on runs and executions", () => {
  test("a step is walked to, opened, cancelled, and the focus stays on the page", async () => {
    const made = await world.make("slow 2");
    const step = await stepOf(plane, made.run, "runs", (each) => each.name === "weather.slow" && each.state === "running");
    await openRun(page, made.run, "view=list&fold=none");
    await row(page, step.id).waitFor();
    await tabTo(page, /^Steps$/);
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await panel(page).getByRole("heading", { level: 2 }).waitFor();
    const id = new URL(page.url()).searchParams.get("step") ?? "";
    await until("its acts are there", async () => (await panel(page).getByRole("button", { name: /^Cancel/ }).count()) > 0);
    await page.keyboard.press("Shift+X");
    await dialog(page).waitFor();
    await until("Keep has the focus", async () => (await focused(page)) === "Keep");
    await confirm(page, "Cancel");
    await untilState(id, "cancelled");
    await keepsFocus(page, "an act");
    await plane.ask(`/api/v1/workflows/${made.run}/cancel-tree`, {});
    watched.clean();
  });

  test("a run is paused, resumed, and the pause taken back", async () => {
    const { execution_id: id, run_id: run } = await call("weather.slow", { seconds: 300 });
    await untilState(id, "running");
    await openRun(page, run, "view=list");
    await until("it may be paused", async () => (await page.getByRole("button", { name: /^Pause/ }).first().getAttribute("aria-disabled")) === null);
    await page.keyboard.press("Shift+P");
    await untilState(id, "paused");
    await page.locator("main .state-mark[data-state=paused]").first().waitFor();
    await tabTo(page, /^Undo$/);
    await page.keyboard.press("Enter");
    await untilState(id, "running");
    await keepsFocus(page, "Undo");
    await page.locator("main .state-mark[data-state=running]").first().waitFor();
    await plane.ask(`/api/v1/executions/${id}/cancel`, {});
    watched.clean();
  });

  test("a wide cancel wants the name, typed", async () => {
    const made = await world.make("slow 22");
    await until("its calls are there", async () => (await stepsOf(plane, made.run)).length === 23);
    await openRun(page, made.run, "view=list");
    await until("the page knows all of them", async () => /23 steps/.test(await page.locator("main").innerText()));
    await page.keyboard.press("Shift+X");
    await dialog(page).waitFor();
    await typeName(page, "trip.slow_tree");
    await untilState(made.execution, "cancelled");
    watched.clean();
  });

  test("restart and fork: to the new run by its link", async () => {
    const { execution_id: id, run_id: run } = await call("weather.lookup", { city: "Lyon", day: 1 });
    await untilState(id, "succeeded");
    await openRun(page, run, "view=list");
    await page.keyboard.press("Shift+R");
    await dialog(page).getByText(/runs 1/).first().waitFor();
    await confirm(page, "Restart");
    await page.getByText("restarted as").first().waitFor();
    await keepsFocus(page, "a restart");
    await tabTo(page, /run_/);
    await page.keyboard.press("Enter");
    await until("the new run", () => /\/runs\/run_/.test(page.url()) && !page.url().includes(run));
    await page.getByText("restart of").first().waitFor();
    await openRun(page, run, "view=list");
    await tabTo(page, /^Fork/);
    await page.keyboard.press("Enter");
    await dialog(page).getByRole("textbox", { name: "Input, JSON" }).waitFor();
    await until("its input is there", async () => (await dialog(page).getByRole("textbox", { name: "Input, JSON" }).inputValue()).includes("Lyon"));
    await tabTo(page, /Input, JSON/);
    await page.keyboard.press("Control+A");
    await page.keyboard.insertText('{"city": "Graz", "day": 2}');
    await confirm(page, "Fork");
    await page.getByText("forked as").first().waitFor();
    await until("it was called so", async () => {
      const { executions } = await plane.ask<{ executions: { execution_id: string }[] }>("/api/v1/executions?agent=weather&function=lookup&limit=1");
      const input = await fetch(`${plane.url}/api/v1/executions/${executions[0]?.execution_id}/payload/input`, { headers: { "x-api-key": await plane.ownerKey() } });
      return (await input.text()).includes("Graz");
    });
    watched.clean();
  });

  test("a decision of a person, from the overview; the focus goes on when its line is gone", async () => {
    const asks = [await call("budget.approve", { city: "Lyon", amount: 84 }), await call("budget.approve", { city: "Graz", amount: 85 })];
    for (const { execution_id: id } of asks) await untilState(id, "waiting");
    await walk(page, "/ui/");
    await until("both need somebody", async () => (await page.locator(".need").count()) === 2);
    await tabTo(page, /^Decide$/);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: /^Approve/ }).waitFor();
    await keepsFocus(page, "the decision was begun");
    if (!/^Approve/.test(await focused(page))) await tabTo(page, /^Approve/);
    await page.keyboard.press("Enter");
    await dialog(page).waitFor();
    await confirm(page, "Approve");
    await until("one was decided", async () => (await Promise.all(asks.map(({ execution_id: id }) => stateOf(id)))).filter((state) => state !== "waiting").length === 1);
    await until("its line is gone", async () => (await page.locator(".need").count()) === 1);
    await keepsFocus(page, "its line went");
    // And the other by the key of its page.
    const left = (await Promise.all(asks.map(async (each) => ({ ...each, state: await stateOf(each.execution_id) })))).find((each) => each.state === "waiting");
    await openRun(page, left?.run_id ?? "", `view=list&step=${left?.execution_id}`);
    await panel(page).getByRole("button", { name: /^Refuse/ }).first().waitFor();
    await page.keyboard.press("d");
    await dialog(page).waitFor();
    await confirm(page, "Refuse");
    await until("it was refused", async () => (await stateOf(left?.execution_id ?? "")) !== "waiting");
    watched.clean();
  });
});

describe("acts on agents and keys", () => {
  const agent = () => plane.ask<{ held: boolean; slots: { cap: number | null } }>("/api/v1/nodes/weather");

  test("hold at once, take it back, hold again and say why, and lift it by the typed name", async () => {
    await walk(page, "/ui/agents/weather");
    await page.getByRole("button", { name: /^Hold/ }).waitFor();
    await page.keyboard.press("Shift+H");
    await until("it is held", async () => (await agent()).held);
    await tabTo(page, /^Undo$/);
    await page.keyboard.press("Enter");
    await until("it is held no longer", async () => !(await agent()).held);
    await page.getByRole("button", { name: /^Hold/ }).waitFor();
    await page.keyboard.press("Shift+H");
    await until("it is held again", async () => (await agent()).held);
    await page.getByRole("button", { name: /^Say why/ }).waitFor();
    await tabTo(page, /^Say why/);
    await page.keyboard.press("Enter");
    await dialog(page).getByRole("textbox").waitFor();
    await tabTo(page, /^Reason/, "Shift+Tab");
    await page.keyboard.type("the provider is down");
    await page.keyboard.press("Enter");
    await until("the reason is there", async () => (await plane.ask<{ held_agents: { reason?: string }[] }>("/api/v1/hold")).held_agents[0]?.reason === "the provider is down");
    await page.getByText("the provider is down").first().waitFor();
    await tabTo(page, /^Unhold/);
    await page.keyboard.press("Enter");
    await dialog(page).waitFor();
    await typeName(page, "weather");
    await until("it is lifted", async () => !(await agent()).held);
    await keepsFocus(page, "the hold was lifted");
    watched.clean();
  });

  test("a cap, and back", async () => {
    await walk(page, "/ui/agents/weather");
    const before = (await agent()).slots.cap;
    await tabTo(page, /^Cap/);
    await page.keyboard.press("Enter");
    await dialog(page).getByRole("textbox").waitFor();
    await tabTo(page, /^Cap;/, "Shift+Tab");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("3");
    await page.keyboard.press("Enter");
    await until("it is capped", async () => (await agent()).slots.cap === 3);
    await page.getByText(/^cap 3, was/).first().waitFor();
    await keepsFocus(page, "the cap");
    await tabTo(page, /^Undo$/);
    await page.keyboard.press("Enter");
    await until("it is as before", async () => (await agent()).slots.cap === before);
    watched.clean();
  });

  test("a key is made, kept and revoked", async () => {
    const keys = async () => (await plane.ask<{ keys: { name: string; prefix: string; state: string }[] }>("/api/v1/keys?all=true")).keys;
    await walk(page, "/ui/settings/keys");
    await tabTo(page, /^New key$/);
    await page.keyboard.press("Enter");
    await until("the name has the focus", async () => /^Name/.test(await focused(page)));
    await page.keyboard.type("by hand");
    await tabTo(page, /^read/);
    await page.keyboard.press("Space");
    await tabTo(page, /^Make the key$/);
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: /The key by hand/ }).waitFor();
    await tabTo(page, /I have it/);
    await page.keyboard.press("Space");
    await tabTo(page, /^Close$/);
    await page.keyboard.press("Enter");
    await keepsFocus(page, "the key was put away");
    const made = (await keys()).find((key) => key.name === "by hand");
    expect(made?.state).toBe("active");
    await page.getByRole("row", { name: /by hand/ }).waitFor();
    await tabTo(page, new RegExp(`^Revoke ${made?.prefix}`));
    await page.keyboard.press("Enter");
    await dialog(page).waitFor();
    await typeName(page, made?.prefix ?? "");
    await until("it is revoked", async () => (await keys()).every((key) => key.name !== "by hand" || key.state === "revoked"));
    await keepsFocus(page, "its row has changed");
    watched.clean();
  });
});

describe("backing out, and single letters", () => {
  test("Escape goes back one level each time", async () => {
    const { execution_id: id, run_id: run } = await call("weather.slow", { seconds: 300 });
    await untilState(id, "running");
    await openRun(page, run, `view=list&step=${id}`);
    await panel(page).getByRole("button", { name: /^Cancel/ }).waitFor();
    await page.keyboard.press("Shift+X");
    await dialog(page).waitFor();
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });
    expect(await panel(page).count(), "the panel stays").toBe(1);
    await page.keyboard.press("/");
    await page.getByRole("dialog", { name: "Search" }).waitFor();
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });
    expect(await panel(page).count(), "the panel stays").toBe(1);
    await page.keyboard.press("Escape");
    await panel(page).waitFor({ state: "detached" });
    expect(page.url(), "the page stays").toContain(run);
    await keepsFocus(page, "the panel closed");
    expect(await stateOf(id)).toBe("running");
    await plane.ask(`/api/v1/executions/${id}/cancel`, {});
    // In a list: the open filter, then the selection.
    await walk(page, "/ui/runs?t=all");
    await page.locator(".list-row").first().waitFor();
    for (const key of ["j", "x"]) await page.keyboard.press(key);
    await page.getByRole("region", { name: "Selected" }).waitFor();
    await tabTo(page, /^state/, "Shift+Tab");
    await page.keyboard.press("Enter");
    await dialog(page).waitFor();
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });
    expect(await focused(page)).toMatch(/^state/);
    expect(await page.getByRole("region", { name: "Selected" }).count()).toBe(1);
    await page.keyboard.press("Escape");
    await page.getByRole("region", { name: "Selected" }).waitFor({ state: "detached" });
    watched.clean();
  });

  test("off means off on every page; what is no letter still works", async () => {
    const { execution_id: id, run_id: run } = await call("weather.slow", { seconds: 300 });
    await untilState(id, "running");
    await walk(page, "/ui/settings/display");
    await page.getByRole("radio", { name: /^off/ }).first().waitFor();
    // By arrows, as radios are: from "on" to "off".
    await tabTo(page, /^on/);
    await page.keyboard.press("ArrowDown");
    await openRun(page, run, `view=list&step=${id}`);
    await panel(page).getByRole("button", { name: /^Cancel/ }).waitFor();
    const address = page.url();
    for (const key of ["Shift+X", "Shift+P", "Shift+R", "w", "o", "2", "/", "?", "g", "r", "j", "y", "l"]) await page.keyboard.press(key);
    expect(page.url()).toBe(address);
    expect(await dialog(page).count()).toBe(0);
    expect(await stateOf(id)).toBe("running");
    await linked(page);
    await tabTo(page, /^Steps$/, "Shift+Tab");
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog", { name: "Palette" }).waitFor();
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });
    await grid(page).focus();
    await page.keyboard.press("Escape");
    await panel(page).waitFor({ state: "detached" });
    await page.evaluate(() => localStorage.clear());
    await plane.ask(`/api/v1/executions/${id}/cancel`, {});
    watched.clean();
  });
});

test("steps are a tree to whoever cannot see them: level, place, size and what is open, by their names", async () => {
  type Node = { role?: { value: string }; name?: { value: string }; properties?: { name: string; value: { value: unknown } }[] };
  const made = await world.make("slow 7");
  await until("its calls are there", async () => (await stepsOf(plane, made.run)).length === 8);
  await openRun(page, made.run, "view=list");
  await until("they are drawn", async () => (await rows(page).count()) > 1);
  const session = await watched.context.newCDPSession(page);
  const nodes = async () => ((await session.send("Accessibility.getFullAXTree")) as { nodes: Node[] }).nodes;
  const of = (node: Node, name: string) => node.properties?.find((each) => each.name === name)?.value.value;
  const steps = (all: Node[]) => all.filter((node) => node.role?.value === "row" && of(node, "level") !== undefined);
  const before = await nodes();
  expect(before.some((node) => node.role?.value === "treegrid" && node.name?.value === "Steps"), "a tree, by name").toBe(true);
  const [root, ...rest] = steps(before);
  expect([root && of(root, "level"), root && of(root, "expanded")]).toEqual([1, true]);
  expect(root?.name?.value).toMatch(/slow_tree/);
  // Seven calls of one function are one row, closed.
  const group = rest.find((node) => /×7/.test(node.name?.value ?? ""));
  expect(group && [of(group, "level"), of(group, "expanded")]).toEqual([2, false]);
  await grid(page).focus();
  for (const key of ["Home", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
  await until("the group is open, and says so", async () => {
    const now = steps(await nodes());
    const opened = now.find((node) => /×7/.test(node.name?.value ?? ""));
    return opened && of(opened, "expanded") === true && now.filter((node) => of(node, "level") === 3).length === 7;
  });
  // The rows say of how many each is which.
  const places = await rows(page).and(page.locator("[aria-level='3']")).evaluateAll((all) => all.map((each) => `${each.getAttribute("aria-posinset")} of ${each.getAttribute("aria-setsize")}`));
  expect(places).toEqual(Array.from({ length: 7 }, (_, at) => `${at + 1} of 7`));
  // A graph is a picture: it is left out, with the way to the list.
  await openRun(page, made.run, "view=tree");
  await page.locator(".react-flow__node").first().waitFor();
  expect(await page.locator(".run-graph").getAttribute("aria-hidden")).toBe("true");
  await page.getByText("The graph is a picture.").waitFor({ state: "attached" });
  await plane.ask(`/api/v1/workflows/${made.run}/cancel-tree`, {});
  watched.clean();
});
