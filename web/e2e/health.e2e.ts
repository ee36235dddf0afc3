// Whether the plane itself is well, and how it is set up: duties, the store, what was set aside and
// dropped, every value of the configuration with its origin and no secret, licences.
import { execFile } from "node:child_process";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changes, dialog, ready } from "./harness/act";
import { type Watched, shot } from "./harness/browser";
import { linked } from "./harness/live";
import type { Plane } from "./harness/plane";
import { python } from "./harness/python";
import { Scene, UNREACHED, end, walk } from "./harness/scene";
import { until } from "./harness/waiting";

const SECRET = "whoever-reads-this-reads-too-much";
let plane: Plane;
let watched: Watched;
let page: Page;

const registered = (id: string, tags: string[] = []) => plane.ask("/api/v1/nodes/register", {
  id, team_id: "default", base_url: "http://127.0.0.1:9", version: "1.0.0", instance_id: "i-1", lifecycle_status: "starting",
  communication_config: { protocols: ["http"], heartbeat_interval: "2s" }, reasoners: [{ id: "run", input_schema: {}, tags }], skills: [],
});

beforeAll(async () => {
  const data = await mkdtemp(join(tmpdir(), "muster-e2e-"));
  const config = join(data, "muster.toml");
  await writeFile(config, `[auth]\napproval_webhook_secret = "${SECRET}"\n[admission]\ntags_need_approval = ["finance"]\n[agents]\nrestart_grace = "12s"\n`);
  ({ plane, watched, page } = await Scene.begin({ data, config, settings: { "admission.queue_capacity": "7777" } }));
});
afterAll(end);

describe("health", () => {
  test("each duty, the store and the verdict are what the plane says", async () => {
    type Health = { status: string; duties: { name: string; late: boolean }[] };
    await walk(page, "/ui/health");
    await linked(page);
    const health = await plane.ask<Health>("/api/v1/health");
    await page.getByText("It answers, it commits, every duty is on time.").waitFor();
    expect(await page.locator("main .state-mark").first().getAttribute("data-state")).toBe("online");
    const rows = page.getByRole("region", { name: /^Duties/ }).locator("tbody tr");
    const told = await rows.evaluateAll((all) => all.map((each) => [(each.querySelector("th")?.firstChild?.textContent ?? "").trim(), each.querySelector("[data-state=late]") !== null]));
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(health.duties.map((duty) => [duty.name, duty.late])));
    expect(await page.title()).toContain("● Health");
    await page.getByText("nothing was set aside").waitFor();
    watched.clean();
  });

  test("a row that cannot be read is set aside at the start: its page says which and why, and drops it once", async () => {
    await registered("spoilt");
    await plane.kill9();
    const spoil = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); n = d.execute(\"UPDATE agents SET registration = 5 WHERE id = 'spoilt'\").rowcount; d.commit(); d.close(); sys.exit(n != 1)";
    await promisify(execFile)(python(), ["-c", spoil, join(plane.data, "decisions.db")]);
    await plane.again();
    watched.forgive(UNREACHED);
    const items = async () => (await plane.ask<{ items: { id: string; about: string; error: string; what: string }[] }>("/api/v1/quarantine")).items;
    const [item] = await items();
    expect(item?.about).toBe("agent spoilt");
    // It is told before anybody looks for it.
    await walk(page, "/ui/");
    await page.locator(".need", { hasText: /set aside/ }).getByRole("link").first().click();
    await page.waitForURL(/\/ui\/health/);
    const section = page.getByRole("region", { name: "Quarantine" });
    await section.getByText("1 set aside; their senders were told").waitFor();
    await section.getByText(item?.error ?? "?").waitFor();
    await section.getByRole("button", { name: "Show" }).click();
    await section.getByText("about agent spoilt").waitFor();
    expect(await section.getByLabel("What was set aside").textContent()).toContain("id=spoilt");
    await shot(page, "quarantine", false);
    const sent = changes(page, /quarantine/);
    await section.getByRole("button", { name: /^Drop/ }).click();
    await dialog(page).getByText("It is removed for good: agent spoilt.").waitFor();
    expect(await dialog(page).getByRole("button", { name: "Drop", exact: true }).isEnabled(), "its name is wanted first").toBe(false);
    await dialog(page).getByRole("textbox").fill((item?.id ?? "").slice(-6));
    await (await ready(page, "Drop")).dblclick();
    await until("it is dropped", async () => (await items()).length === 0);
    await section.getByText("nothing was set aside").waitFor();
    expect(sent.length).toBe(1);
    watched.forgive(UNREACHED);
    watched.clean();
  });
});

describe("settings", () => {
  type Value = { key: string; value: unknown; source: string; place?: string };
  const values = async () => (await plane.ask<{ values: Value[] }>("/api/v1/config")).values;

  test("every value of the configuration, where it came from, and no secret", async () => {
    await walk(page, "/ui/settings/configuration");
    const rows = page.locator("main tbody tr");
    const all = await values();
    await until("all of them are listed", async () => (await rows.count()) === all.length);
    const row = (key: string) => rows.filter({ has: page.locator("th code", { hasText: new RegExp(`^${key.replaceAll(".", "\\.")}$`) }) });
    expect(await row("agents.restart_grace").textContent()).toMatch(/12s?.*file.*muster\.toml/);
    expect(await row("admission.queue_capacity").textContent()).toMatch(/7777.*environment.*MUSTER_ADMISSION__QUEUE_CAPACITY/);
    await page.getByLabel("only what is not the default").check();
    const own = all.filter((one) => one.source !== "default");
    await until("only those", async () => (await rows.count()) === own.length);
    expect((await rows.locator("th").allTextContents()).sort()).toEqual(own.map((one) => one.key).sort());
    expect(await row("auth.approval_webhook_secret").textContent()).toContain("redacted");
    expect(await page.content()).not.toContain(SECRET);
    await shot(page, "configuration", false);
    await page.getByRole("searchbox").fill("no such thing");
    await page.getByText(`0 of ${all.length} match.`).waitFor();
    watched.clean();
  });

  test.each(["Approve", "Reject"] as const)("tags that wait: %s says what follows, and is one change for two clicks", async (verb) => {
    const agent = `shop-${verb.toLowerCase()}`;
    await registered(agent, ["finance"]);
    await walk(page, "/ui/settings/tags");
    const line = page.getByRole("listitem").filter({ has: page.getByRole("link", { name: agent, exact: true }) });
    await line.getByText("asks for finance").waitFor();
    const sent = changes(page, new RegExp(`tags/${agent}`));
    await line.getByRole("button", { name: new RegExp(`^${verb}`) }).click();
    await dialog(page).getByText(`${verb} finance for ${agent}.`).waitFor();
    await (await ready(page, verb)).dblclick();
    const of = async () => (await plane.ask<{ agents: { agent: string; pending: string[]; approved: string[]; rejected: string[] }[] }>("/api/v1/tags")).agents.find((each) => each.agent === agent);
    await until("it is decided", async () => (await of())?.pending.length === 0);
    expect(verb === "Approve" ? (await of())?.approved : (await of())?.rejected).toEqual(["finance"]);
    await line.getByText(verb === "Approve" ? "approved finance" : "rejected finance").waitFor();
    expect(sent.length).toBe(1);
    watched.clean();
  });

  test("about: the version that runs, and each package with its licence", async () => {
    await walk(page, "/ui/settings/about");
    const { version } = await plane.ask<{ version: string }>("/api/v1/health");
    await page.locator("main").getByText(version, { exact: true }).first().waitFor();
    const named = Number(/· ([\d,]+) packages/.exec((await page.getByRole("heading", { name: /Whose work/ }).textContent()) ?? "")?.[1]);
    const lines = page.locator("main li details");
    expect(await lines.count()).toBe(named);
    await page.getByRole("searchbox").fill("react-dom");
    await until("one is left", async () => (await lines.count()) === 1);
    await lines.first().locator("summary").click();
    expect((await lines.first().locator("pre").textContent())?.length).toBeGreaterThan(200);
    watched.clean();
  });
});
