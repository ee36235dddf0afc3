// Acts on machines, agents and messages: what an act says before is what the plane says, two
// clicks are one change, and the receipt stays. Also what the fleet says by itself: drift, and
// placements that wait, with the reason for each machine.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type Server, createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changes, dialog, ready } from "./harness/act";
import { type Watched, shot } from "./harness/browser";
import { confirm, keepsFocus } from "./harness/keys";
import { Machine, type Node, type Worker } from "./harness/machine";
import type { Plane } from "./harness/plane";
import { openRun } from "./harness/run-page";
import { Scene, after, end, walk } from "./harness/scene";
import { Spoken } from "./harness/spoken";
import { until } from "./harness/waiting";

type Would = { text: string; workers_total: number; workers_unknown: number };
let plane: Plane;
let receiver: Server;
/** What the receiver of webhooks answers, and how often it was asked. */
let answers = 410;
let asked = 0;
let edge: Machine;
let watched: Watched;
let page: Page;

beforeAll(async () => {
  receiver = createServer((_, response) => {
    asked += 1;
    response.writeHead(answers).end();
  });
  await new Promise<void>((listens) => receiver.listen(0, "127.0.0.1", listens));
  after(() => receiver.close());
  const data = await mkdtemp(join(tmpdir(), "muster-e2e-"));
  await writeFile(join(data, "muster.toml"), '[webhooks]\nallow = ["127.0.0.1"]\n[admission]\ntags_need_approval = ["booking"]\n');
  ({ plane, watched, page } = await Scene.begin({ data, config: join(data, "muster.toml"), agents: ["weather"] }));
  edge = await Machine.start(plane, "edge-1", { workers: 2 });
  after(() => edge.close());
  // By hand: an agent of the SDK waits for the decision before it serves.
  await plane.ask("/api/v1/nodes/register", {
    id: "shop", team_id: "default", base_url: "http://127.0.0.1:9", version: "1.0.0", instance_id: "i-1", lifecycle_status: "starting",
    communication_config: { protocols: ["http"], heartbeat_interval: "2s" }, reasoners: [{ id: "sell", input_schema: {}, tags: ["booking"] }], skills: [],
  });
  await edge.online();
});
afterAll(end);

describe("agents", () => {
  test("an agent waits for its tags, is approved once, and may then be called", async () => {
    const state = async () => (await plane.ask<{ pending_tags?: string[] }>("/api/v1/nodes/shop")).pending_tags ?? [];
    await until("its tags wait", async () => (await state()).length > 0);
    await walk(page, "/ui/agents/shop");
    await page.getByText(/Calls are refused until its tags are approved/).waitFor();
    const sent = changes(page, /tags\/shop\/approve/);
    await page.getByRole("button", { name: /^Approve tags/ }).click();
    await dialog(page).getByText("booking").first().waitFor();
    await dialog(page).getByRole("button", { name: "Approve tags", exact: true }).dblclick();
    await until("they are approved", async () => (await state()).length === 0);
    await page.getByText("approved", { exact: true }).filter({ visible: true }).first().waitFor();
    expect(sent.length).toBe(1);
    watched.clean();
  });

  test("one that is gone is retired: the dialog says what stays, and its page says it is away", async () => {
    await plane.ask("/api/v1/nodes/shop/shutdown", { instance_id: "i-1", reason: "test" });
    await until("it is down", async () => (await plane.ask<{ state: string }>("/api/v1/nodes/shop")).state === "down");
    const would = await plane.ask<{ instances: string[]; stays: string }>("/api/v1/nodes/shop/retire?dry_run=true", {});
    await walk(page, "/ui/agents/shop");
    const sent = changes(page, /nodes\/shop\/retire/);
    await page.getByRole("button", { name: /^Retire/ }).click();
    await dialog(page).getByText(`It leaves the list with ${would.instances.length} instance`).waitFor();
    await dialog(page).getByText(would.stays.slice(0, 30)).waitFor();
    await dialog(page).getByRole("textbox").fill("shop");
    await dialog(page).getByRole("button", { name: "Retire", exact: true }).dblclick();
    await page.getByText(/No agent shop ever registered here, or it was retired/).waitFor();
    expect(sent.length).toBe(1);
    await walk(page, "/ui/");
    watched.forgive(/404/);
    watched.clean();
  });
});

describe("two clicks are one change", () => {
  let run = "";
  let execution = "";
  const button = (name: RegExp) => page.getByRole("main").getByRole("button", { name }).filter({ visible: true }).first();
  const able = (name: RegExp) => until(`${name} can be pressed`, async () => (await button(name).getAttribute("aria-disabled")) === null);
  beforeAll(async () => {
    ({ run_id: run, execution_id: execution } = await plane.call("weather.slow", { seconds: 300 }));
    await plane.untilState(execution, "running");
  });

  test("pause and resume", async () => {
    await openRun(page, run, "view=list");
    const sent = changes(page, /\/(pause|resume)/);
    await able(/^Pause/);
    await button(/^Pause/).dblclick();
    await plane.untilState(execution, "paused");
    await page.locator("main .state-mark[data-state=paused]").first().waitFor();
    expect(sent.length, "one pause, and nothing that takes it back").toBe(1);
    await openRun(page, run, "view=list");
    await able(/^Resume/);
    await button(/^Resume/).dblclick();
    await plane.untilState(execution, "running");
    await page.locator("main .state-mark[data-state=running]").first().waitFor();
    expect(sent.length).toBe(2);
    watched.clean();
  });

  test("cancel a run, restart and fork it", async () => {
    const runs = async () => (await plane.ask<{ total: number }>("/api/v1/runs?function=slow&limit=1")).total;
    await openRun(page, run, "view=list");
    const sent = changes(page, /\/(cancel-tree|restart|fork)/);
    await able(/^Cancel/);
    await button(/^Cancel/).click();
    await (await ready(page, "Cancel")).dblclick();
    await plane.untilState(execution, "cancelled");
    const before = await runs();
    for (const [verb, told] of [["Restart", "restarted as"], ["Fork", "forked as"]] as const) {
      await openRun(page, run, "view=list");
      await able(new RegExp(`^${verb}`));
      await button(new RegExp(`^${verb}`)).click();
      await (await ready(page, verb)).dblclick();
      await page.getByText(told).first().waitFor();
    }
    expect([sent.length, await runs() - before], "one of each").toEqual([3, 2]);
    for (const each of (await plane.ask<{ runs: { run_id: string }[] }>("/api/v1/runs?status=running,queued&limit=100")).runs) await plane.ask(`/api/v1/workflows/${each.run_id}/cancel-tree`, {});
    watched.clean();
  });

  test("hold an agent, and a token for a machine", async () => {
    await walk(page, "/ui/agents/weather");
    const sent = changes(page, /\/(hold|enrollments)/);
    await able(/^Hold/);
    await button(/^Hold/).dblclick();
    await page.getByRole("button", { name: /^Unhold/ }).first().waitFor();
    expect(sent.length).toBe(1);
    await plane.ask("/api/v1/unhold", { agent: "weather" });
    await walk(page, "/ui/settings/nodes");
    await page.getByRole("textbox", { name: "Name" }).fill("twice");
    await page.getByRole("button", { name: "Make a token" }).dblclick();
    await page.getByRole("region", { name: /token for twice/ }).waitFor();
    const { enrollments } = await plane.ask<{ enrollments: { name: string }[] }>("/api/v1/fleet/enrollments");
    expect([sent.length, enrollments.filter((each) => each.name === "twice").length]).toEqual([2, 1]);
    watched.clean();
  });
});

describe("messages", () => {
  test("a dead letter says why, is sent again once for two clicks, and leaves the list", async () => {
    const { port } = receiver.address() as { port: number };
    await plane.ask("/api/v1/execute/async/weather.lookup", { input: { city: "Lyon", day: 1 }, webhook: { url: `http://127.0.0.1:${port}/told` } });
    const dead = async () => (await plane.ask<{ webhooks: { id: string }[] }>("/api/v1/webhooks?state=dead")).webhooks;
    await until("it was given up", async () => (await dead()).length === 1, 60_000);
    await walk(page, "/ui/health");
    const outbox = page.getByRole("region", { name: "Outbox" });
    await outbox.getByText("1 dead letters").or(outbox.getByText("1 dead letter")).first().waitFor();
    await outbox.getByText(/410/).first().waitFor();
    answers = 204;
    const before = asked;
    const sent = changes(page, /redrive/);
    await outbox.getByRole("button", { name: /^Redrive execution/ }).click();
    await dialog(page).getByText(/sent again to/).waitFor();
    await shot(page, "redrive", false);
    await dialog(page).getByRole("button", { name: "Redrive", exact: true }).dblclick();
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
    await walk(page, "/ui/fleet");
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
    await walk(page, "/ui/fleet/nodes/edge-1");
    await until("it may be drained", async () => (await page.getByRole("button", { name: /^Drain/ }).getAttribute("aria-disabled")) === null);
    await page.keyboard.press("Shift+D");
    const would = await plane.ask<Would>("/api/v1/fleet/nodes/edge-1/drain?dry_run=true", {});
    await dialog(page).getByText(would.text).waitFor();
    await confirm(page, "Drain");
    await until("it drains", async () => (await edge.now()).wish === "draining");
    await keepsFocus(page, "the drain");
    await page.getByRole("button", { name: /^Activate/ }).waitFor();
    await page.keyboard.press("Shift+D");
    await until("it takes work again", async () => (await edge.now()).wish === "active");
    await page.getByRole("button", { name: "More acts" }).click();
    await page.getByLabel("State to pin").selectOption("suspect");
    const sent = changes(page, /\/pin$/);
    await page.getByRole("button", { name: "Pin", exact: true }).dblclick();
    await until("it is pinned", async () => (await edge.now()).pin?.state === "suspect");
    await page.getByText(/counts as suspect, whatever its facts say/).first().waitFor();
    expect(sent.length).toBe(1);
    await page.getByRole("button", { name: /^Unpin/ }).click();
    await until("its facts decide", async () => !(await edge.now()).pin);
    watched.clean();
  });

  test("what a machine says other than what is believed is drift, by name, until both agree again", async () => {
    type Drift = { name: string; believed: number; claimed: number; missing: string[]; next: string };
    const { token } = await plane.ask<{ token: string }>("/api/v1/fleet/enrollments", { name: "mini", max_workers: 8 });
    // A daemon of ours tells no untruth: this one is spoken by hand, over the real link.
    const mini = new Spoken("node.py", ["--url", plane.url, "--name", "mini", "--token", token]);
    after(() => mini.close());
    await mini.next(30_000);
    await until("it is online", async () => (await plane.ask<Node>("/api/v1/fleet/nodes/mini")).state === "online");
    for (let n = 1; n <= 3; n += 1) await plane.ask("/api/v1/fleet/workers", { command: "sleep", args: ["600"], name: `w-${n}`, node: "mini" });
    await walk(page, "/ui/fleet");
    await mini.say("forget w-2");
    const told = await until("the plane says so", async () => (await plane.ask<{ drift: Drift[] }>("/api/v1/fleet/drift")).drift.find((each) => each.missing.length > 0), 60_000);
    expect(told).toMatchObject({ name: "mini", believed: 3, claimed: 2, missing: ["w-2"] });
    // By itself: the page was open before.
    const section = page.getByRole("region", { name: /Drift · 1/ });
    await section.getByText("plane 3, node 2").waitFor();
    expect(((await section.textContent()) ?? "").replaceAll(/\s+/g, " ")).toMatch(/mini.*plane 3, node 2.*missing w-2/);
    await section.getByText(told.next).waitFor();
    await section.getByText(/^(now|\d+ (s|m) ago)$/).first().waitFor();
    await shot(page, "drift", false);
    await walk(page, "/ui/");
    await page.locator(".need", { hasText: "node mini says other than what is believed" }).getByRole("link").first().click();
    await page.waitForURL(/fleet\/nodes\/mini/);
    await page.getByText(/missing there: w-2/).first().waitFor();
    // A difference ends nobody.
    expect((await plane.ask<{ workers: Worker[] }>("/api/v1/fleet/workers?node=mini")).workers.map((each) => each.state)).toEqual(["running", "running", "running"]);
    await walk(page, "/ui/fleet");
    await mini.say("remember");
    await section.waitFor({ state: "detached" });
    watched.clean();
  });

  test("a worker that went while its machine did not look has ended unobserved, and its machine says which", async () => {
    const away = await Machine.start(plane, "away");
    after(() => away.close());
    await away.online();
    const { id, pid } = await away.spawn("gone", "sleep", ["600"]);
    const kept = join(away.home, "workers", id);
    const { holder } = JSON.parse(await readFile(join(kept, "state.json"), "utf8")) as { holder: { pid: number } };
    // The daemon, then the holder and the process with all that was kept of them.
    away.daemon.signal("SIGKILL");
    await away.daemon.wait();
    for (const each of [holder.pid, pid ?? 0]) if (each > 0) process.kill(each, "SIGKILL");
    await rm(kept, { recursive: true });
    await away.again();
    await until("it has ended", async () => (await away.worker(id)).ended_at !== null, 80_000);
    expect(await away.worker(id)).toMatchObject({ state: "exited", ended_how: "unobserved" });
    await walk(page, `/ui/fleet/workers/${id}`);
    await page.locator("main .state-mark[data-state=exited]").first().waitFor();
    await page.getByText(/unobserved|nobody saw|nobody reported/).first().waitFor();
    expect(await page.locator("main").textContent(), "no code is made up").not.toMatch(/exited\(0\)/);
    await shot(page, "worker-unobserved", false);
    await walk(page, "/ui/fleet/nodes/away");
    await page.getByText(/missing there: gone/).first().waitFor();
    watched.clean();
  });

  test("a silent one is marked lost, then retired, then deleted: each says first whom it touches", async () => {
    const { pid } = await edge.spawn("steady", "sleep", ["600"]);
    // It outlives the daemon, and its machine is given up.
    after(() => pid && process.kill(pid, "SIGKILL"));
    // By its id: a name is free again when its machine is retired.
    const { id: machine } = await edge.now();
    const nodeNow = () => edge.now(machine);
    // The machine falls silent with its worker.
    await edge.daemon.end();
    await until("it is not online", async () => (await nodeNow()).state !== "online", 60_000);
    await walk(page, `/ui/fleet/nodes/${machine}`);
    const would = await plane.ask<Would>(`/api/v1/fleet/nodes/${machine}/lost?dry_run=true`, {});
    expect(would.workers_total).toBe(1);
    const lost = changes(page, /\/lost$/);
    await page.getByRole("button", { name: "More acts" }).click();
    await page.getByRole("button", { name: /^Mark lost/ }).click();
    await dialog(page).getByText(would.text).waitFor();
    await dialog(page).getByText(`${would.workers_total} worker`).first().waitFor();
    await dialog(page).getByText("steady").waitFor();
    expect(/may still run/.test((await dialog(page).textContent()) ?? "")).toBe(would.workers_unknown > 0);
    await shot(page, "node-lost", false);
    await dialog(page).getByRole("textbox").fill("edge-1");
    await dialog(page).getByRole("button", { name: "Mark lost", exact: true }).dblclick();
    await until("it is lost", async () => (await nodeNow()).state === "lost");
    expect(lost.length).toBe(1);
    await page.locator("main .state-mark[data-state=lost]").first().waitFor();
    const retire = await plane.ask<Would>(`/api/v1/fleet/nodes/${machine}/retire?dry_run=true`, {});
    await page.getByRole("button", { name: /^Retire/ }).click();
    await dialog(page).getByText(retire.text).waitFor();
    await dialog(page).getByRole("textbox").fill("edge-1");
    await confirm(page, "Retire");
    await until("it is retired", async () => (await nodeNow()).wish === "retired");
    await page.getByRole("button", { name: /^Delete/ }).click();
    await dialog(page).getByRole("textbox").fill("edge-1");
    await dialog(page).getByRole("button", { name: "Delete", exact: true }).dblclick();
    await page.waitForURL(/\/ui\/fleet$/);
    const left = await plane.ask<{ nodes: { name: string }[] }>("/api/v1/fleet/nodes");
    expect(left.nodes.map((each) => each.name)).not.toContain("edge-1");
    watched.forgive(/404/);
    watched.clean();
  });
});
