// The fleet with a real machine: its daemon enrols, workers are placed, watched, driven and ended
// from the page; what the page says is what the plane knows, and a silent machine is unknown.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changes, dialog, ready } from "./harness/act";
import { type Watched, shot } from "./harness/browser";
import { holds } from "./harness/look";
import { Machine, type Worker } from "./harness/machine";
import type { Plane } from "./harness/plane";
import { Scene, after, end, walk } from "./harness/scene";
import { until } from "./harness/waiting";

let plane: Plane;
let edge: Machine;
let watched: Watched;
let page: Page;

const workers = async () => (await plane.ask<{ workers: Worker[] }>("/api/v1/fleet/workers")).workers;

beforeAll(async () => {
  ({ plane, watched, page } = await Scene.begin());
});
afterAll(end);

describe("a machine", () => {
  test("is enrolled with a token that is shown once, and appears without a reload", async () => {
    await walk(page, "/ui/settings/nodes");
    await page.getByRole("textbox", { name: "Name" }).fill("edge-1");
    await page.getByRole("textbox", { name: /^Workers/ }).fill("4");
    await page.getByRole("button", { name: "Make a token" }).click();
    const secret = page.getByRole("region", { name: /token for edge-1/ });
    await secret.waitFor();
    expect(await secret.getByRole("button", { name: "Close" }).isEnabled()).toBe(false);
    await secret.getByRole("button", { name: "Show" }).click();
    const token = (await secret.locator("code").first().textContent()) ?? "";
    await secret.getByLabel("I have it").check();
    await secret.getByRole("button", { name: "Close" }).click();
    await secret.waitFor({ state: "detached" });
    expect(await page.content(), "the token has left the document").not.toContain(token);
    const other = await watched.context.newPage();
    await other.goto("/ui/fleet");
    edge = await Machine.start(plane, "edge-1", { token });
    after(() => edge.close());
    const tile = other.getByRole("link", { name: /edge-1/ });
    await tile.waitFor();
    await until("its tile says online", async () => (await tile.locator(".state-mark").first().getAttribute("data-state")) === "online");
    await other.close();
    watched.clean();
  });

  test("the fleet's words and counts are the plane's", async () => {
    await walk(page, "/ui/fleet");
    const fleet = await plane.ask<{ nodes: Record<string, number>; capacity: { reachable: number } }>("/api/v1/fleet");
    expect(fleet.nodes.online).toBe(1);
    expect(await page.getByText(/slots reachable/).textContent()).toContain(String(fleet.capacity.reachable));
    const facts = await plane.ask<{ facts: { what: string }[] }>("/api/v1/fleet/nodes/edge-1");
    await walk(page, "/ui/fleet/nodes/edge-1");
    expect(await page.locator("table").first().locator("tbody tr").count()).toBeGreaterThanOrEqual(facts.facts.length);
    await holds(watched, "/ui/fleet/nodes/edge-1", "node");
    watched.clean();
  });

  test("cordon is at once and Undo takes it back; drain is asked first, by key too, and offers no Undo", async () => {
    await walk(page, "/ui/fleet/nodes/edge-1");
    await page.getByRole("button", { name: /^Cordon/ }).dblclick();
    await until("it is cordoned", async () => (await edge.now()).wish === "cordoned");
    await page.getByRole("button", { name: "Undo" }).first().click();
    await until("it takes work again", async () => (await edge.now()).wish === "active");
    await page.getByRole("button", { name: /^Drain/ }).waitFor();
    await page.keyboard.press("Shift+D");
    const asks = page.getByRole("dialog", { name: /^Drain/ });
    await asks.getByText(/released one after another/).waitFor();
    expect(await asks.getByRole("button", { name: "Keep" }).evaluate((keep) => keep === document.activeElement), "Keep has the focus").toBe(true);
    expect((await edge.now()).wish, "a look changes nothing").toBe("active");
    await asks.getByRole("button", { name: "Drain", exact: true }).click();
    await until("it drains", async () => (await edge.now()).wish === "draining");
    await page.getByRole("button", { name: /^Activate/ }).waitFor();
    expect(await page.getByRole("button", { name: "Undo" }).count(), "what ended does not come back").toBe(0);
    await page.keyboard.press("Shift+D");
    await until("it takes work again", async () => (await edge.now()).wish === "active");
    watched.clean();
  });
});

describe("a worker", () => {
  test("the form says where it would go before it is sent, and why a command is refused", async () => {
    await walk(page, "/ui/fleet");
    await page.keyboard.press("Shift+S");
    const form = page.getByRole("region", { name: "Spawn a worker" });
    await form.getByRole("textbox", { name: /^Command/ }).fill("cat");
    await form.getByText("Would be placed.").waitFor();
    await form.getByLabel("on this node").check();
    await form.getByRole("textbox", { name: "Node" }).fill("nowhere");
    await form.getByText("Would be refused.").or(form.getByRole("alert")).first().waitFor();
    await shot(page, "spawn-refused", false);
    expect((await workers()).length, "a look places nothing").toBe(0);
    watched.forgive(/40[49]|422|503/);
    await form.getByRole("textbox", { name: "Node" }).fill("edge-1");
    await form.getByText("Would be placed.").waitFor();
    await form.getByRole("button", { name: "Spawn", exact: true }).dblclick();
    await page.waitForURL(/workers\/wrk_\w+/);
    await until("one, not two", async () => (await workers()).length === 1);
    expect((await workers())[0]?.state).toBe("running");
    watched.forgive(/40[49]|422|503/);
    watched.clean();
  });

  test("two watch, one drives, the other asks and takes over; all see who, and what is typed", async () => {
    const { id } = await edge.spawn("shell", "bash", ["--norc"], { io: "pty" });
    await walk(page, `/ui/fleet/workers/${id}/terminal`);
    const terminal = (of: Page) => of.getByRole("region", { name: "Terminal of shell" });
    const says = (of: Page, text: RegExp) => until(`${text} is said`, async () => text.test((await terminal(of).getByRole("status").first().textContent()) ?? ""));
    const shows = (of: Page, text: string) => until(`the screen shows ${text}`, async () => ((await of.locator(".xterm-rows").textContent()) ?? "").includes(text));
    await says(page, /you watch; nobody drives/);
    const second = await watched.context.newPage();
    await second.goto(`/ui/fleet/workers/${id}/terminal`);
    await says(second, /you watch/);
    await says(page, /1 other here/);
    await page.locator(".xterm").click();
    await page.keyboard.type("echo watching-types\n");
    await terminal(page).getByRole("button", { name: "Take the keyboard" }).click();
    await says(page, /you drive/);
    await says(second, /driving:/);
    await page.keyboard.type("echo one-$((20+3))\n");
    await shows(page, "one-23");
    await shows(second, "one-23");
    expect(await page.locator(".xterm-rows").textContent()).not.toContain("watching-types");
    await shot(page, "terminal-drives", false);
    await shot(second, "terminal-watches", false);
    await terminal(second).getByRole("button", { name: "Ask for the keyboard" }).click();
    await terminal(second).getByRole("button", { name: /^Take it from/ }).click();
    await says(second, /you drive/);
    await says(page, /you watch/);
    await second.keyboard.type("echo two-$((40+4))\n");
    await shows(page, "two-44");
    await second.keyboard.press("Control+Shift+L");
    await says(second, /you watch/);
    await second.close();
    await says(page, /alone/);
    watched.clean();
  });

  test("machine and worker have one state: in lists, on their pages, by the plane; counts are what their links list", async () => {
    const told = await workers();
    expect(told.length).toBeGreaterThan(1);
    for (const { id, name, state } of told) {
      await walk(page, "/ui/fleet/nodes/edge-1");
      const line = page.getByRole("grid", { name: "Workers" }).getByRole("row").filter({ hasText: name }).first();
      expect(await line.locator(".state-mark").first().getAttribute("data-state"), name).toBe(state);
      expect(await line.locator(".state-mark").first().getAttribute("title"), "why, and how old that is").toMatch(/ · .*\d/);
      await walk(page, `/ui/fleet/workers/${id}`);
      expect(await page.locator("main .state-mark").first().getAttribute("data-state"), name).toBe(state);
      expect((await edge.worker(id)).state, name).toBe(state);
    }
    const { nodes } = await plane.ask<{ nodes: Record<string, number> }>("/api/v1/fleet");
    for (const [state, many] of Object.entries(nodes).filter(([state, many]) => many > 0 && state !== "total")) {
      await walk(page, "/ui/fleet");
      const count = page.locator(`main a[href$="state=${state}"]`).first();
      expect(Number.parseInt((await count.textContent()) ?? "", 10), state).toBe(many);
      await count.click();
      await page.waitForURL(new RegExp(`state=${state}`));
      const marks = page.locator("section[aria-label=Nodes] .state-mark");
      await until(`${many} of ${state} are listed`, async () => (await marks.evaluateAll((all, wanted) => all.filter((each) => (each as HTMLElement).dataset.state === wanted).length, state)) === many);
    }
    watched.clean();
  });

  test("a lost plane is said, and the terminal comes back with what it had", async () => {
    const id = (await workers()).find((each) => each.name === "shell")?.id;
    await walk(page, `/ui/fleet/workers/${id}/terminal`);
    const status = page.getByRole("region", { name: "Terminal of shell" }).getByRole("status").first();
    await until("it is open", async () => /you watch/.test((await status.textContent()) ?? ""));
    await plane.kill9();
    await until("the loss is said", async () => /lost|connecting/.test((await status.textContent()) ?? ""));
    await page.locator(".live[data-live=reconnecting], .live[data-live=offline]").waitFor();
    await shot(page, "terminal-lost", false);
    await plane.again();
    await until("it is open again", async () => /you watch/.test((await status.textContent()) ?? ""), 60_000);
    await until("what was on the screen is there", async () => ((await page.locator(".xterm-rows").textContent()) ?? "").includes("two-44"));
    watched.forgive();
  });

  test("restart says what comes, happens once, and the same worker has another process before the same terminal", async () => {
    const id = (await workers()).find((each) => each.name === "shell")?.id ?? "";
    await until("it runs, confirmed by its machine", async () => (await edge.worker(id)).state === "running");
    const before = await edge.worker(id);
    await walk(page, `/ui/fleet/workers/${id}/terminal`);
    const status = page.getByRole("region", { name: "Terminal of shell" }).getByRole("status").first();
    await until("it is open", async () => /you watch/.test((await status.textContent()) ?? ""));
    const sent = changes(page, /restart$/);
    await page.getByRole("button", { name: /^Restart/ }).first().click();
    const verb = await ready(page, "Restart");
    expect(await dialog(page).textContent()).toMatch(/SIGTERM.*same id/);
    await shot(page, "worker-restart", false);
    await verb.dblclick();
    await page.getByText("it runs again").first().waitFor();
    const now = await edge.worker(id);
    expect([now.id, now.restarts, now.ended_at]).toEqual([id, before.restarts + 1, null]);
    expect(now.pid).not.toBe(before.pid);
    expect(sent.length).toBe(1);
    expect(await status.textContent()).toMatch(/you watch/);
    watched.clean();
  });

  test("release says what ends, happens once, and the terminal says why it closed", async () => {
    const id = (await workers()).find((each) => each.name === "shell")?.id ?? "";
    await until("it runs, confirmed by its machine", async () => (await edge.worker(id)).state === "running");
    await walk(page, `/ui/fleet/workers/${id}/terminal`);
    await until("it is open", async () => /you watch/.test((await page.getByRole("region", { name: "Terminal of shell" }).getByRole("status").first().textContent()) ?? ""));
    const sent = changes(page, /release$/);
    await page.getByRole("button", { name: /^Release/ }).first().click();
    await dialog(page).waitFor();
    const verb = await ready(page, "Release");
    await shot(page, "worker-release", false);
    await verb.dblclick();
    await until("the plane has its end", async () => (await edge.worker(id)).ended_at !== null);
    expect(sent.length).toBe(1);
    await page.getByText(/closed:/).first().waitFor();
    await holds(watched, `/ui/fleet/workers/${id}`, "worker-ended");
    watched.forgive(/WebSocket|terminal/);
    watched.clean();
  });
});

test("a machine that fell silent is unknown: no number becomes 0, nothing turns green", async () => {
  await walk(page, "/ui/fleet");
  edge.daemon.signal("SIGSTOP");
  try {
    const tile = page.getByRole("link", { name: /edge-1/ });
    await until("the page says so by itself", async () => ["suspect", "unreachable"].includes((await tile.locator(".state-mark").first().getAttribute("data-state")) ?? ""), 80_000);
    expect(await tile.textContent()).toMatch(/last known|\?/);
    await shot(page, "fleet-silent", false);
    watched.clean();
  } finally {
    edge.daemon.signal("SIGCONT");
  }
});
