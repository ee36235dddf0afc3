// Acts on machines, agents and messages: what an act says before is what the plane says, two
// clicks are one change, and the receipt stays. Also what the fleet says by itself: drift, and
// placements that wait, with the reason for each machine.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type Server, createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Watched, closeBrowser, open, shot } from "./harness/browser";
import { Child } from "./harness/child";
import { confirm, keepsFocus } from "./harness/keys";
import { settled } from "./harness/look";
import { Plane, binary } from "./harness/plane";
import { until } from "./harness/waiting";
import { World } from "./harness/world";

type Node = { id: string; state: string; wish: string; pin?: { state: string } | null };
type Worker = { id: string; state: string; pid: number | null };
type Would = { text: string; workers_total: number; workers_unknown: number };
let plane: Plane;
let world: World;
let receiver: Server;
/** What the receiver of webhooks answers, and how often it was asked. */
let answers = 410;
let asked = 0;
let home: string;
let node: Child;
/** The process of a worker whose machine is given up: it outlives the daemon. */
let worked: number | null = null;
let watched: Watched;
let page: Page;
let machine = "edge-1";
const nodeNow = () => plane.ask<Node>(`/api/v1/fleet/nodes/${machine}`);
const dialog = () => page.getByRole("dialog");
async function go(path: string): Promise<void> {
  await page.goto(path);
  await settled(page);
}

/** Requests of the page that change something and match. */
function changes(wanted: RegExp): string[] {
  const sent: string[] = [];
  page.on("request", (request) => {
    if (request.method() !== "GET" && !request.url().includes("dry_run") && wanted.test(request.url())) sent.push(request.url());
  });
  return sent;
}

async function enrolled(name: string, workers: number): Promise<string> {
  const { token } = await plane.ask<{ token: string }>("/api/v1/fleet/enrollments", { name, max_workers: workers });
  const state = await mkdtemp(join(tmpdir(), "muster-node-"));
  const enrol = new Child("enrol", [binary(), "node", "enroll", "--plane", plane.url, "--token", token, "--state", state]);
  expect(await enrol.wait(), enrol.output).toBe(0);
  return state;
}

beforeAll(async () => {
  receiver = createServer((_, response) => {
    asked += 1;
    response.writeHead(answers).end();
  });
  await new Promise<void>((listens) => receiver.listen(0, "127.0.0.1", listens));
  const data = await mkdtemp(join(tmpdir(), "muster-e2e-"));
  await writeFile(join(data, "muster.toml"), '[webhooks]\nallow = ["127.0.0.1"]\n[admission]\ntags_need_approval = ["booking"]\n');
  plane = await Plane.start({ data, config: join(data, "muster.toml") });
  home = await enrolled("edge-1", 2);
  node = new Child("node", [binary(), "node", "run", "--state", home]);
  ({ world } = await World.start(plane, { key: await plane.ownerKey(), agents: ["weather"] }));
  // By hand: an agent of the SDK waits for the decision before it serves.
  await plane.ask("/api/v1/nodes/register", {
    id: "shop", team_id: "default", base_url: "http://127.0.0.1:9", version: "1.0.0", instance_id: "i-1", lifecycle_status: "starting",
    communication_config: { protocols: ["http"], heartbeat_interval: "2s" }, reasoners: [{ id: "sell", input_schema: {}, tags: ["booking"] }], skills: [],
  });
  watched = await open(plane.url, { key: await plane.ownerKey() });
  page = watched.page;
  await until("the machine is online", async () => (await nodeNow()).state === "online");
});
afterAll(async () => {
  await watched?.close();
  await world?.close();
  await node?.end();
  if (worked) process.kill(worked, "SIGKILL");
  await plane?.close();
  receiver?.close();
  if (home) await rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  await closeBrowser();
});

describe("agents", () => {
  test("an agent waits for its tags, is approved once, and may then be called", async () => {
    const state = async () => (await plane.ask<{ pending_tags?: string[] }>("/api/v1/nodes/shop")).pending_tags ?? [];
    await until("its tags wait", async () => (await state()).length > 0);
    await go("/ui/agents/shop");
    await page.getByText(/Calls are refused until its tags are approved/).waitFor();
    const sent = changes(/tags\/shop\/approve/);
    await page.getByRole("button", { name: /^Approve tags/ }).click();
    await dialog().getByText("booking").first().waitFor();
    await dialog().getByRole("button", { name: "Approve tags", exact: true }).dblclick();
    await until("they are approved", async () => (await state()).length === 0);
    await page.getByText("approved", { exact: true }).filter({ visible: true }).first().waitFor();
    expect(sent.length).toBe(1);
    watched.clean();
  });

  test("one that is gone is retired: the dialog says what stays, and its page says it is away", async () => {
    await plane.ask("/api/v1/nodes/shop/shutdown", { instance_id: "i-1", reason: "test" });
    await until("it is down", async () => (await plane.ask<{ state: string }>("/api/v1/nodes/shop")).state === "down");
    const would = await plane.ask<{ instances: string[]; stays: string }>("/api/v1/nodes/shop/retire?dry_run=true", {});
    await go("/ui/agents/shop");
    const sent = changes(/nodes\/shop\/retire/);
    await page.getByRole("button", { name: /^Retire/ }).click();
    await dialog().getByText(`It leaves the list with ${would.instances.length} instance`).waitFor();
    await dialog().getByText(would.stays.slice(0, 30)).waitFor();
    await dialog().getByRole("textbox").fill("shop");
    await dialog().getByRole("button", { name: "Retire", exact: true }).dblclick();
    await page.getByText(/No agent shop ever registered here, or it was retired/).waitFor();
    expect(sent.length).toBe(1);
    await go("/ui/");
    watched.forgive(/404/);
    watched.clean();
  });
});

describe("messages", () => {
  test("a dead letter says why, is sent again once for two clicks, and leaves the list", async () => {
    const { port } = receiver.address() as { port: number };
    await plane.ask("/api/v1/execute/async/weather.lookup", { input: { city: "Lyon", day: 1 }, webhook: { url: `http://127.0.0.1:${port}/told` } });
    const dead = async () => (await plane.ask<{ webhooks: { id: string }[] }>("/api/v1/webhooks?state=dead")).webhooks;
    await until("it was given up", async () => (await dead()).length === 1, 60_000);
    await go("/ui/health");
    const outbox = page.getByRole("region", { name: "Outbox" });
    await outbox.getByText("1 dead letters").or(outbox.getByText("1 dead letter")).first().waitFor();
    await outbox.getByText(/410/).first().waitFor();
    answers = 204;
    const before = asked;
    const sent = changes(/redrive/);
    await outbox.getByRole("button", { name: /^Redrive execution/ }).click();
    await dialog().getByText(/sent again to/).waitFor();
    await shot(page, "redrive", false);
    await dialog().getByRole("button", { name: "Redrive", exact: true }).dblclick();
    await until("it was delivered", async () => (await dead()).length === 0);
    await until("the page has no dead letter", async () => /0 dead letters/.test((await outbox.textContent()) ?? ""));
    expect([sent.length, asked - before]).toEqual([1, 1]);
    watched.clean();
  });
});

describe("machines", () => {
  test("a placement that waits says why each machine was passed over", async () => {
    await plane.ask("/api/v1/fleet/workers", { command: "sleep", args: ["600"], name: "wants-gpu", target_labels: ["gpu"], queue: true });
    const { placements } = await plane.ask<{ placements: { text: string; passed_over: { name: string; evidence: string }[] }[] }>("/api/v1/fleet/placements");
    expect(placements.length).toBe(1);
    await go("/ui/fleet");
    const waiting = page.getByRole("region", { name: /Placements that wait · 1/ });
    await waiting.getByText(placements[0]?.text ?? "?").waitFor();
    await waiting.getByText("why each node was passed over").click();
    for (const each of placements[0]?.passed_over ?? []) {
      await waiting.getByRole("link", { name: each.name }).waitFor();
      await waiting.getByText(each.evidence).waitFor();
    }
    expect(placements[0]?.passed_over.map((each) => each.name)).toEqual(["edge-1"]);
    await shot(page, "placement-waits", false);
    watched.clean();
  });

  test("drain and back without a mouse, and a pin that is taken away", async () => {
    await go("/ui/fleet/nodes/edge-1");
    await until("it may be drained", async () => (await page.getByRole("button", { name: /^Drain/ }).getAttribute("aria-disabled")) === null);
    await page.keyboard.press("Shift+D");
    const would = await plane.ask<Would>("/api/v1/fleet/nodes/edge-1/drain?dry_run=true", {});
    await dialog().getByText(would.text).waitFor();
    await confirm(page, "Drain");
    await until("it drains", async () => (await nodeNow()).wish === "draining");
    await keepsFocus(page, "the drain");
    await page.getByRole("button", { name: /^Activate/ }).waitFor();
    await page.keyboard.press("Shift+D");
    await until("it takes work again", async () => (await nodeNow()).wish === "active");
    await page.getByRole("button", { name: "More acts" }).click();
    await page.getByLabel("State to pin").selectOption("suspect");
    const sent = changes(/\/pin$/);
    await page.getByRole("button", { name: "Pin", exact: true }).dblclick();
    await until("it is pinned", async () => (await nodeNow()).pin?.state === "suspect");
    await page.getByText(/counts as suspect, whatever its facts say/).first().waitFor();
    expect(sent.length).toBe(1);
    await page.getByRole("button", { name: /^Unpin/ }).click();
    await until("its facts decide", async () => !(await nodeNow()).pin);
    watched.clean();
  });

  test("what differs is drift, by name, with what follows", async () => {
    const drift = { node: "node_1", name: "edge-1", believed: 9, claimed: 8, missing: ["w-9"], surplus: [], next: "ends as exited(unobserved) with the next inventory", since: new Date(Date.now() - 60_000).toISOString() };
    await page.route("**/api/v1/fleet/drift", async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...((await answer.json()) as object), drift: [drift] } });
    });
    await go("/ui/fleet");
    const section = page.getByRole("region", { name: /Drift · 1/ });
    expect(((await section.textContent()) ?? "").replaceAll(/\s+/g, " ")).toMatch(/edge-1.*plane 9, node 8.*missing w-9.*next inventory/);
    await page.unroute("**/api/v1/fleet/drift");
    watched.clean();
  });

  test("a silent one is marked lost, then retired, then deleted: each says first whom it touches", async () => {
    const { worker } = await plane.ask<{ worker: Worker }>("/api/v1/fleet/workers", { command: "sleep", args: ["600"], name: "steady" });
    const workerNow = () => plane.ask<Worker>(`/api/v1/fleet/workers/${worker.id}`);
    await until("it runs", async () => (await workerNow()).state === "running");
    worked = (await workerNow()).pid;
    // By its id: a name is free again when its machine is retired.
    machine = (await nodeNow()).id;
    // The machine falls silent with its worker.
    await node.end();
    await until("it is not online", async () => (await nodeNow()).state !== "online", 60_000);
    await go(`/ui/fleet/nodes/${machine}`);
    const would = await plane.ask<Would>(`/api/v1/fleet/nodes/${machine}/lost?dry_run=true`, {});
    expect(would.workers_total).toBe(1);
    const lost = changes(/\/lost$/);
    await page.getByRole("button", { name: "More acts" }).click();
    await page.getByRole("button", { name: /^Mark lost/ }).click();
    await dialog().getByText(would.text).waitFor();
    await dialog().getByText(`${would.workers_total} worker`).first().waitFor();
    await dialog().getByText("steady").waitFor();
    expect(/may still run/.test((await dialog().textContent()) ?? "")).toBe(would.workers_unknown > 0);
    await shot(page, "node-lost", false);
    await dialog().getByRole("textbox").fill("edge-1");
    await dialog().getByRole("button", { name: "Mark lost", exact: true }).dblclick();
    await until("it is lost", async () => (await nodeNow()).state === "lost");
    expect(lost.length).toBe(1);
    await page.locator("main .state-mark[data-state=lost]").first().waitFor();
    const retire = await plane.ask<Would>(`/api/v1/fleet/nodes/${machine}/retire?dry_run=true`, {});
    await page.getByRole("button", { name: /^Retire/ }).click();
    await dialog().getByText(retire.text).waitFor();
    await dialog().getByRole("textbox").fill("edge-1");
    await confirm(page, "Retire");
    await until("it is retired", async () => (await nodeNow()).wish === "retired");
    await page.getByRole("button", { name: /^Delete/ }).click();
    await dialog().getByRole("textbox").fill("edge-1");
    await dialog().getByRole("button", { name: "Delete", exact: true }).dblclick();
    await page.waitForURL(/\/ui\/fleet$/);
    const left = await plane.ask<{ nodes: { name: string }[] }>("/api/v1/fleet/nodes");
    expect(left.nodes.map((each) => each.name)).not.toContain("edge-1");
    watched.forgive(/404/);
    watched.clean();
  });
});
