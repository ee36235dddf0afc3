// The fleet with a real machine: its daemon enrols, workers are placed, watched, driven and ended
// from the page; what the page says is what the plane knows, and a silent machine is unknown.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Watched, closeBrowser, open, shot } from "./harness/browser";
import { Child } from "./harness/child";
import { holds, settled } from "./harness/look";
import { Plane, binary } from "./harness/plane";
import { until } from "./harness/waiting";

type Worker = { id: string; name: string; state: string; ended_at: string | null; release?: object };
type Node = { id: string; state: string; wish: string; pin: { state: string } | null };
let plane: Plane;
let node: Child;
let home: string;
let watched: Watched;
let page: Page;

const workerOf = (id: string) => plane.ask<Worker>(`/api/v1/fleet/workers/${id}`);
const nodeNow = () => plane.ask<Node>("/api/v1/fleet/nodes/edge-1");
const workers = async () => (await plane.ask<{ workers: Worker[] }>("/api/v1/fleet/workers")).workers;
async function go(path: string): Promise<void> {
  await page.goto(path);
  await settled(page);
}
async function spawned(name: string, command: string, args: string[]): Promise<string> {
  const made = await plane.ask<{ worker: Worker }>("/api/v1/fleet/workers", { command, args, name, io: "pty" });
  await until(`${name} runs`, async () => (await workerOf(made.worker.id)).state === "running");
  return made.worker.id;
}

beforeAll(async () => {
  plane = await Plane.start();
  home = await mkdtemp(join(tmpdir(), "muster-node-"));
  watched = await open(plane.url, { key: await plane.ownerKey() });
  page = watched.page;
});
afterAll(async () => {
  await watched?.close();
  // What a machine runs outlives its daemon: it is ended first.
  if (node?.alive) {
    const left = async () => (await workers()).filter((worker) => worker.ended_at === null);
    for (const worker of await left()) await plane.ask(`/api/v1/fleet/workers/${worker.id}/release`, {}).catch(() => undefined);
    await until("every worker has ended", async () => (await left()).length === 0);
  }
  await node?.end();
  await plane?.close();
  if (home) await rm(home, { recursive: true, force: true });
  await closeBrowser();
});

describe("a machine", () => {
  test("is enrolled with a token that is shown once, and appears without a reload", async () => {
    await go("/ui/settings/nodes");
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
    const enrol = new Child("enrol", [binary(), "node", "enroll", "--plane", plane.url, "--token", token, "--state", home]);
    expect(await enrol.wait(), enrol.output).toBe(0);
    node = new Child("node", [binary(), "node", "run", "--state", home]);
    const tile = other.getByRole("link", { name: /edge-1/ });
    await tile.waitFor();
    await until("its tile says online", async () => (await tile.locator(".state-mark").first().getAttribute("data-state")) === "online");
    await other.close();
    watched.clean();
  });

  test("the fleet's words and counts are the plane's", async () => {
    await go("/ui/fleet");
    const fleet = await plane.ask<{ nodes: Record<string, number>; capacity: { reachable: number } }>("/api/v1/fleet");
    expect(fleet.nodes.online).toBe(1);
    expect(await page.getByText(/slots reachable/).textContent()).toContain(String(fleet.capacity.reachable));
    const facts = await plane.ask<{ facts: { what: string }[] }>("/api/v1/fleet/nodes/edge-1");
    await go("/ui/fleet/nodes/edge-1");
    expect(await page.locator("table").first().locator("tbody tr").count()).toBeGreaterThanOrEqual(facts.facts.length);
    await holds(watched, "/ui/fleet/nodes/edge-1", "node");
    watched.clean();
  });

  test("cordon is at once and Undo takes it back; drain is asked first, by key too, and offers no Undo", async () => {
    await go("/ui/fleet/nodes/edge-1");
    await page.getByRole("button", { name: /^Cordon/ }).dblclick();
    await until("it is cordoned", async () => (await nodeNow()).wish === "cordoned");
    await page.getByRole("button", { name: "Undo" }).first().click();
    await until("it takes work again", async () => (await nodeNow()).wish === "active");
    await page.getByRole("button", { name: /^Drain/ }).waitFor();
    await page.keyboard.press("Shift+D");
    const asks = page.getByRole("dialog", { name: /^Drain/ });
    await asks.getByText(/released one after another/).waitFor();
    expect(await asks.getByRole("button", { name: "Keep" }).evaluate((keep) => keep === document.activeElement), "Keep has the focus").toBe(true);
    expect((await nodeNow()).wish, "a look changes nothing").toBe("active");
    await asks.getByRole("button", { name: "Drain", exact: true }).click();
    await until("it drains", async () => (await nodeNow()).wish === "draining");
    await page.getByRole("button", { name: /^Activate/ }).waitFor();
    expect(await page.getByRole("button", { name: "Undo" }).count(), "what ended does not come back").toBe(0);
    await page.keyboard.press("Shift+D");
    await until("it takes work again", async () => (await nodeNow()).wish === "active");
    watched.clean();
  });
});

describe("a worker", () => {
  test("the form says where it would go before it is sent, and why a command is refused", async () => {
    await go("/ui/fleet");
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
    const id = await spawned("shell", "bash", ["--norc"]);
    await go(`/ui/fleet/workers/${id}/terminal`);
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

  test("a lost plane is said, and the terminal comes back with what it had", async () => {
    const id = (await workers()).find((each) => each.name === "shell")?.id;
    await go(`/ui/fleet/workers/${id}/terminal`);
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

  test("release says what ends, happens once, and the terminal says why it closed", async () => {
    const id = (await workers()).find((each) => each.name === "shell")?.id ?? "";
    await until("it runs, confirmed by its machine", async () => (await workerOf(id)).state === "running");
    await go(`/ui/fleet/workers/${id}/terminal`);
    await until("it is open", async () => /you watch/.test((await page.getByRole("region", { name: "Terminal of shell" }).getByRole("status").first().textContent()) ?? ""));
    const sent: string[] = [];
    page.on("request", (request) => request.method() === "POST" && /release$/.test(request.url()) && sent.push(request.url()));
    await page.getByRole("button", { name: /^Release/ }).first().click();
    const dialog = page.getByRole("dialog");
    const verb = dialog.getByRole("button", { name: "Release", exact: true });
    await until("the consequence is there", () => verb.isEnabled());
    await shot(page, "worker-release", false);
    await verb.dblclick();
    await until("the plane has its end", async () => (await workerOf(id)).ended_at !== null);
    expect(sent.length).toBe(1);
    await page.getByText(/closed:/).first().waitFor();
    await holds(watched, `/ui/fleet/workers/${id}`, "worker-ended");
    watched.forgive(/WebSocket|terminal/);
    watched.clean();
  });
});

test("a machine that fell silent is unknown: no number becomes 0, nothing turns green", async () => {
  await go("/ui/fleet");
  node.signal("SIGSTOP");
  try {
    const tile = page.getByRole("link", { name: /edge-1/ });
    await until("the page says so by itself", async () => ["suspect", "unreachable"].includes((await tile.locator(".state-mark").first().getAttribute("data-state")) ?? ""), 80_000);
    expect(await tile.textContent()).toMatch(/last known|\?/);
    await shot(page, "fleet-silent", false);
    watched.clean();
  } finally {
    node.signal("SIGCONT");
  }
});
