// What people and programs may write into any field comes back as text, exact, and is run nowhere:
// in reasons, names, arguments, labels, schemas, feedback and addresses, on every page that shows them.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Watched, shot } from "./harness/browser";
import { Machine } from "./harness/machine";
import type { Plane } from "./harness/plane";
import { Scene, after, end, walk } from "./harness/scene";
import { until } from "./harness/waiting";
import type { World } from "./harness/world";

const TAG = '<img src=x onerror="window.__canary=7">';
/** Turns the direction of text, colours a terminal, rings a bell: none of it may reach the page as itself. */
const TURNS = "\u202egnp.exe\u202c \u001b[31mred\u0007";
const HOSTILE = `${TAG}</script><script>window.__canary=8</script> ${TURNS} {{7*7}} 9223372036854775807`;
/** Reasons and feedback may hold no control characters; what turns text is none. */
const REASON = `${TAG}</script> \u202egnp.exe\u202c {{7*7}}`;
let plane: Plane;
let world: World;
let edge: Machine;
let watched: Watched;
let page: Page;

beforeAll(async () => {
  ({ plane, world, watched, page } = await Scene.begin({ agents: ["trip", "weather", "geo", "hotel", "budget", "mail"] }));
  edge = await Machine.start(plane, "edge-1");
  after(() => edge.close());
  await edge.online();
});
afterAll(end);

/** The page shows the tag as the text that it is, and nothing of it has become anything else. */
async function shown(path: string, wanted = TAG): Promise<void> {
  await walk(page, path);
  await until(`${path} shows it`, async () => ((await page.locator("body").textContent()) ?? "").includes(wanted)).catch(async (error: unknown) => {
    throw new Error(`${String(error)}\n${(await page.locator("main").innerText()).slice(0, 1_000)}`);
  });
  await harmless(path);
}

async function harmless(path: string): Promise<void> {
  expect(await page.evaluate(() => "__canary" in window), `${path}: it was run`).toBe(false);
  expect(await page.locator("img[src=x], main script").count(), path).toBe(0);
  expect(await page.locator("body").evaluate((body) => body.textContent ?? ""), path).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  expect(await page.title()).not.toMatch(/[\u0000-\u001f\u202a-\u202e]/);
  watched.clean();
}

describe("as text, exact", () => {
  test("why an agent is on hold", async () => {
    await plane.ask("/api/v1/hold", { agent: "mail", reason: REASON });
    await plane.call("mail.send", { to: HOSTILE, subject: HOSTILE });
    for (const path of ["/ui/agents/mail", "/ui/agents", "/ui/queues", "/ui/queues/mail?why=1", "/ui/"]) await shown(path);
    await shot(page, "hostile-hold", false);
  });

  test("why everything is on hold: over every page", async () => {
    await plane.ask("/api/v1/hold", { reason: REASON });
    try {
      await shown("/ui/runs");
      await shown("/ui/health");
    } finally {
      await plane.ask("/api/v1/unhold", {});
    }
  });

  test("why something was cancelled and paused, and in what a person said", async () => {
    const cancelled = await plane.call("weather.slow", { seconds: 300 });
    await plane.untilState(cancelled.execution_id, "running");
    await plane.ask(`/api/v1/executions/${cancelled.execution_id}/cancel`, { reason: REASON });
    await shown(`/ui/runs/${cancelled.run_id}?view=list&step=${cancelled.execution_id}&tab=why`);
    await shown("/ui/runs");
    const paused = await plane.call("weather.slow", { seconds: 300 });
    await plane.untilState(paused.execution_id, "running");
    await plane.ask(`/api/v1/executions/${paused.execution_id}/pause`, { reason: REASON });
    await shown(`/ui/runs/${paused.run_id}?view=list&step=${paused.execution_id}&tab=why`);
    await plane.ask(`/api/v1/executions/${paused.execution_id}/cancel`, {});
    const asks = await plane.call("budget.approve", { city: TAG, amount: 1 });
    await plane.untilState(asks.execution_id, "waiting");
    await shown(`/ui/runs/${asks.run_id}?view=list&step=${asks.execution_id}&tab=input`);
    await plane.ask(`/api/v1/executions/${asks.execution_id}/approval-response`, { decision: "rejected", feedback: REASON });
    await plane.untilState(asks.execution_id, "succeeded");
    await shown(`/ui/runs/${asks.run_id}?view=list&step=${asks.execution_id}&tab=output`);
  });

  test("what a worker is told to run, and what it prints", async () => {
    const { id } = await edge.spawn("odd", "bash", ["-c", `printf '%s' "$1"; exec sleep 600`, "odd", HOSTILE.replaceAll("\u0007", "")], { io: "pty" });
    await shown(`/ui/fleet/workers/${id}`);
    await shown("/ui/fleet/nodes/edge-1");
    await walk(page, `/ui/fleet/workers/${id}/terminal`);
    await until("its screen shows it", async () => ((await page.locator(".xterm-rows").textContent()) ?? "").includes("<img src=x"));
    expect(await page.evaluate(() => "__canary" in window)).toBe(false);
    expect(await page.locator("img[src=x]").count()).toBe(0);
    watched.clean();
  });

  test("what an agent says of itself: version, functions, tags and schemas, down to the fields of a call", async () => {
    const schema = { type: "object", title: HOSTILE, description: HOSTILE, properties: { city: { type: "string", title: TAG, description: HOSTILE, default: HOSTILE, enum: [HOSTILE, "b"] } }, required: ["city"] };
    await plane.ask("/api/v1/nodes/register", {
      id: "odd", team_id: "default", base_url: "http://127.0.0.1:9", version: TAG, instance_id: "i-1", lifecycle_status: "starting",
      communication_config: { protocols: ["http"], heartbeat_interval: "2s" }, reasoners: [{ id: "run", description: HOSTILE, input_schema: schema, tags: [TAG] }], skills: [],
    });
    await shown("/ui/agents/odd");
    await shown("/ui/agents/odd/call/run");
    await shot(page, "hostile-call", false);
  });

  test("labels of a run, in lists, filters and the search", async () => {
    const answer = await fetch(`${plane.url}/api/v1/execute/async/geo.resolve`, { method: "POST", headers: { "content-type": "application/json", "x-session-id": TAG }, body: JSON.stringify({ input: { city: "Ulm" } }) });
    expect(answer.status).toBe(202);
    const { run_id: run } = (await answer.json()) as { run_id: string };
    await shown(`/ui/runs?label=${encodeURIComponent(`session=${TAG}`)}`);
    expect(await page.locator(`a[href*="${run}"]`).count(), "the filter finds it").toBeGreaterThan(0);
    await walk(page, "/ui/");
    await page.keyboard.press("/");
    await page.getByRole("dialog", { name: "Search" }).waitFor();
    await page.keyboard.insertText(TAG);
    await until("the search has answered", async () => (await page.getByRole("dialog", { name: "Search" }).getByText(/Nothing is called that|understood|geo\.resolve/).count()) > 0);
    await harmless("search");
  });

  test("names of keys", async () => {
    await plane.ask("/api/v1/keys", { name: TAG, scopes: ["read"] });
    await shown("/ui/settings/keys");
    await walk(page, "/ui/settings/audit?action=key");
    await harmless("the audit log");
  });
});

test("what no field may hold is refused with words, not kept", async () => {
  for (const [path, body] of [
    ["/api/v1/fleet/enrollments", { name: TAG }],
    ["/api/v1/nodes/register", { id: TAG, base_url: "http://127.0.0.1:9", version: "1", reasoners: [], skills: [] }],
    ["/api/v1/fleet/workers", { command: "sleep", args: ["1"], name: TAG }],
  ] as const) {
    const answer = await fetch(plane.url + path, { method: "POST", headers: { "content-type": "application/json", "x-api-key": await plane.ownerKey() }, body: JSON.stringify(body) });
    expect(answer.status, path).toBe(400);
    expect(((await answer.json()) as { message?: string }).message, path).toMatch(/\w/);
  }
  expect((await world.say("goodbye geo")).goodbye).toBe("geo");
});
