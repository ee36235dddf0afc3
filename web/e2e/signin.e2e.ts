// Who may: signing in and out, keys made, changed and ended from the page, and what was done in the
// audit log. No key is ever in the document, the address or the browser's storage after its sign-in.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dialog, ready } from "./harness/act";
import { type Watched, shot } from "./harness/browser";
import { settled } from "./harness/look";
import { Child } from "./harness/child";
import { linked } from "./harness/live";
import { type Plane, binary } from "./harness/plane";
import { Proxy } from "./harness/proxy";
import { Scene, after, end, visit, walk } from "./harness/scene";
import { freePort, until } from "./harness/waiting";

type Key = { id: string; name: string; prefix: string; state: string; scopes: string[]; sessions: number };
let plane: Plane;
let owner: string;
let watched: Watched;
let page: Page;
const keys = async () => (await plane.ask<{ keys: Key[] }>("/api/v1/keys")).keys;
const session = (of: Page) => of.evaluate(async () => (await fetch("/api/v1/session")).json() as Promise<{ signed_in: boolean; principal: string | null; scopes: string[] }>);

beforeAll(async () => {
  ({ plane, watched, page } = await Scene.begin());
  owner = await plane.ownerKey();
});
afterAll(end);

async function nowhere(of: Page, secret: string): Promise<void> {
  const kept = await of.evaluate(() => document.documentElement.outerHTML + location.href + JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie);
  expect(kept).not.toContain(secret);
}

describe("signing in", () => {
  test("a wrong key is refused without a hint which; the right one leads back to where one was", async () => {
    await visit(plane, async (mine) => {
      const field = mine.page.getByLabel("Key, or one-use code");
      await until("the field has the focus", () => field.evaluate((element) => element === document.activeElement));
      await field.fill("mk_wrong");
      await mine.page.keyboard.press("Enter");
      await mine.page.getByText("That key is not known or was revoked.").waitFor();
      await shot(mine.page, "login-wrong", false);
      mine.forgive(/401/);
      await field.fill(owner);
      await mine.page.keyboard.press("Enter");
      await mine.page.waitForURL((url) => url.pathname === "/ui/settings/audit");
      expect((await session(mine.page)).signed_in).toBe(true);
      await settled(mine.page);
      await nowhere(mine.page, owner);
    }, { at: "/ui/login?next=/settings/audit" });
  });

  test("a one-use code in the address signs in once, and is gone from the address", async () => {
    const { path, code } = await plane.ask<{ path: string; code: string }>("/api/v1/keys/code", {});
    await visit(plane, async (mine) => {
      await mine.page.waitForURL(/\/ui\/$/);
      expect((await session(mine.page)).signed_in).toBe(true);
      await nowhere(mine.page, code);
      await mine.context.clearCookies();
      await mine.page.goto("/ui/settings/display");
      await mine.page.goto(path);
      await mine.page.getByText(/not known or was revoked/).waitFor();
      expect((await session(mine.page)).signed_in).toBe(false);
      mine.forgive(/401/);
    }, { at: path });
  });

  test("what needs a key asks for it in place, and goes on there", async () => {
    await visit(plane, async (mine) => {
      await mine.page.getByText("Seeing and changing keys needs a key").waitFor();
      await shot(mine.page, "asks-for-key", false);
      await mine.page.getByLabel("Key, or one-use code").fill(owner);
      await mine.page.getByRole("button", { name: "Sign in" }).click();
      await mine.page.getByRole("button", { name: "New key" }).waitFor();
      await mine.page.getByRole("button", { name: "Sign out" }).click();
      await mine.page.getByText("Seeing and changing keys needs a key").waitFor();
      expect((await session(mine.page)).signed_in).toBe(false);
      mine.forgive(/401/);
    }, { at: "/ui/settings/keys" });
  });
});

describe("beyond this machine", () => {
  let proxy: Proxy;
  beforeAll(async () => {
    proxy = await Proxy.start(plane);
    after(() => proxy.close());
  });

  test("nothing is read without a key, and every page leads to the sign-in", async () => {
    for (const path of ["overview", "runs", "executions", "nodes", "fleet", "queues", "usage", "config", "events", "search?q=x"]) expect((await fetch(`${proxy.url}/api/v1/${path}`)).status, path).toBe(401);
    await visit(proxy, async (mine) => {
      for (const path of ["/", "/agents", "/fleet", "/queues", "/health", "/usage", "/runs/run_1", "/settings/keys"]) {
        await mine.page.goto(`/ui${path}`);
        await mine.page.waitForURL((url) => url.pathname === "/ui/login" && url.searchParams.get("next") === path);
        await mine.page.getByLabel("Key, or one-use code").waitFor();
      }
    }, { wanted: /401/ });
  });

  test("after the sign-in one is where one wanted to be, everything is read, and the stream is live", async () => {
    await visit(proxy, async (mine) => {
      await mine.page.waitForURL(/\/ui\/login\?next=/);
      await shot(mine.page, "login-beyond", false);
      await mine.page.getByLabel("Key, or one-use code").fill(owner);
      await mine.page.keyboard.press("Enter");
      await mine.page.waitForURL((url) => url.pathname === "/ui/runs" && url.searchParams.get("state") === "failed");
      await settled(mine.page);
      await linked(mine.page);
      await nowhere(mine.page, owner);
      for (const path of ["/ui/", "/ui/fleet", "/ui/settings/configuration"]) {
        await walk(mine.page, path);
        expect(await mine.page.getByRole("alert").count(), path).toBe(0);
      }
      // Signed out, nothing is read again.
      await walk(mine.page, "/ui/settings/keys");
      await mine.page.getByRole("button", { name: "Sign out" }).click();
      await mine.page.waitForURL(/\/ui\/login/);
      expect(await mine.page.evaluate(async () => (await fetch("/api/v1/overview")).status)).toBe(401);
    }, { at: "/ui/runs?state=failed", wanted: /401/ });
  });

  test("the sign-in leads to no other place", async () => {
    await visit(proxy, async ({ page }) => {
      for (const next of ["https://example.org/", "//example.org", "/\\example.org", "javascript:alert(1)"]) {
        await page.goto(`/ui/login?next=${encodeURIComponent(next)}`);
        await page.getByLabel("Key, or one-use code").fill(owner);
        await page.keyboard.press("Enter");
        await page.waitForURL((url) => url.origin === proxy.url && url.pathname.startsWith("/ui/") && url.pathname !== "/ui/login");
      }
    }, { wanted: /401|404/ });
  });
});

describe("`muster dev`", () => {
  test("prints a link that signs its reader in, once; its agent and its first call are there", async () => {
    const home = await mkdtemp(join(tmpdir(), "muster-dev-"));
    after(() => rm(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }));
    const dev = new Child("dev", [binary(), "dev", "--listen", `127.0.0.1:${await freePort()}`, "--data", join(home, "data")], { cwd: home });
    after(() => dev.end());
    const link = new URL(await until("the link is printed", () => /open\s+(http:\S+#code=\S+)/.exec(dev.output)?.[1], 60_000));
    await until("its first call is printed", () => /hello\.greet.*succeeded/.test(dev.output), 60_000);
    await visit({ url: link.origin }, async (mine) => {
      await mine.page.waitForURL(/\/ui\/$/);
      expect(await session(mine.page)).toMatchObject({ signed_in: true });
      await nowhere(mine.page, link.hash.replace("#code=", ""));
      await walk(mine.page, "/ui/agents");
      await mine.page.getByRole("link", { name: "hello", exact: true }).first().waitFor();
      await walk(mine.page, "/ui/runs");
      await mine.page.locator(".list-row .state-mark[data-state=succeeded]").first().waitFor();
      await walk(mine.page, "/ui/fleet");
      await mine.page.getByRole("link", { name: /local/ }).first().waitFor();
    }, { at: link.href });
    // Whoever finds the line in a log later is nobody.
    await visit({ url: link.origin }, async (mine) => {
      await mine.page.getByText(/not known or was revoked/).waitFor();
      expect((await session(mine.page)).signed_in).toBe(false);
    }, { at: link.href, wanted: /401/ });
    dev.signal("SIGINT");
    await dev.wait();
  });
});

describe("keys", () => {
  test("a new one is shown once, does what it may, and no more", async () => {
    await page.goto("/ui/settings/keys");
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByRole("textbox", { name: /^Name/ }).fill("for the wall");
    await page.getByRole("checkbox", { name: /^read/ }).check();
    await page.getByRole("button", { name: "Make the key" }).dblclick();
    const secret = page.getByRole("region", { name: /The key for the wall/ });
    await secret.waitFor();
    await shot(page, "key-once", false);
    await secret.getByRole("button", { name: "Show" }).click();
    const text = (await secret.locator("code").first().textContent()) ?? "";
    await secret.getByLabel("I have it").check();
    await secret.getByRole("button", { name: "Close" }).click();
    await nowhere(page, text);
    const made = (await keys()).filter((key) => key.name === "for the wall");
    expect(made.length, "two clicks, one key").toBe(1);
    expect(made[0]?.scopes).toEqual(["read"]);
    await page.getByRole("row", { name: /for the wall/ }).waitFor();
    const says = async (path: string, method = "GET") => (await fetch(plane.url + path, { method, headers: { "x-api-key": text, "content-type": "application/json" }, body: method === "POST" ? "{}" : undefined })).status;
    expect(await says("/api/v1/overview")).toBe(200);
    expect(await says("/api/v1/keys")).toBe(403);
    await visit(plane, async (mine) => {
      await settled(mine.page);
      await mine.page.goto("/ui/health");
      const hold = mine.page.getByRole("button", { name: /Hold everything/ });
      await until("the act says what it lacks", async () => (await hold.getAttribute("aria-disabled")) === "true");
      expect(await hold.getAttribute("title")).toContain("needs operate");
    }, { at: "/ui/queues", key: text });
    watched.clean();
  });

  test("a revoked key ends the sessions that came with it", async () => {
    const made = await plane.ask<{ key: string; id: string; prefix: string }>("/api/v1/keys", { name: "to be ended", scopes: ["read", "operate", "admin"] });
    await visit(plane, async (mine) => {
      await mine.page.getByText("You are").waitFor();
      await page.goto("/ui/settings/keys");
      const row = page.getByRole("row", { name: /to be ended/ });
      await row.getByRole("button", { name: /^Revoke/ }).click();
      await dialog(page).getByRole("textbox").fill(made.prefix);
      const verb = await ready(page, /^Revoke/);
      expect(await dialog(page).textContent(), "who is signed in with it").toContain("1 signed-in browser");
      await shot(page, "key-revoke", false);
      await verb.dblclick();
      await until("the plane has it", async () => (await keys()).every((key) => key.name !== "to be ended" || key.state === "revoked"));
      await mine.page.reload();
      await mine.page.getByText("Seeing and changing keys needs a key").waitFor();
      mine.forgive(/401/);
    }, { at: "/ui/settings/keys", key: made.key });
    watched.clean();
  });

  test("a rotated one is shown once, and the audit log has each of these, in order", async () => {
    const before = (await keys()).find((key) => key.name === "for the wall");
    await page.goto("/ui/settings/keys");
    const row = page.getByRole("row", { name: /for the wall/ }).first();
    await row.getByRole("button", { name: /^Rotate/ }).click();
    const verb = await ready(page, /^Rotate/);
    await verb.dblclick();
    await page.getByRole("region", { name: /takes the place of/ }).waitFor();
    expect((await keys()).filter((key) => key.name === "for the wall" && key.id !== before?.id).length).toBe(1);
    await walk(page, "/ui/settings/audit?action=key");
    const { lines } = await plane.ask<{ lines: { action: string }[] }>("/api/v1/audit?action=key&limit=100");
    const shown = await page.locator("main ol li code").allTextContents();
    expect(shown).toEqual(lines.map((line) => line.action));
    expect(shown).toEqual(expect.arrayContaining(["key.created", "key.revoked"]));
    watched.clean();
  });
});

describe("the frame", () => {
  test("keys go to places, open the search and the palette, and Escape closes", async () => {
    await walk(page, "/ui/settings/display");
    for (const [keys, path] of [["g r", "/ui/runs"], ["g a", "/ui/agents"], ["g f", "/ui/fleet"], ["g q", "/ui/queues"], ["g h", "/ui/health"], ["g s", "/ui/settings"], ["g o", "/ui/"]] as const) {
      for (const key of keys.split(" ")) await page.keyboard.press(key);
      await page.waitForURL(`**${path}`);
      await settled(page);
    }
    await page.keyboard.press("/");
    await page.getByRole("dialog", { name: "Search" }).waitFor();
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog", { name: "Palette" }).waitFor();
    await page.keyboard.type("fleet");
    await page.keyboard.press("Enter");
    await page.waitForURL(/fleet/);
    await page.keyboard.press("?");
    await dialog(page).waitFor();
    await shot(page, "keys", false);
    await page.keyboard.press("Escape");
    watched.clean();
  });

  test("display settings hold over a reload: theme, rows, and single letters off", async () => {
    await page.goto("/ui/settings/display");
    await page.getByRole("radio", { name: "dark" }).check();
    await page.getByRole("radio", { name: "compact" }).check();
    await page.getByRole("radio", { name: /^off/ }).first().check();
    await page.reload();
    await settled(page);
    expect(await page.evaluate(() => [document.documentElement.dataset.theme, document.documentElement.dataset.density])).toEqual(["dark", "compact"]);
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await page.keyboard.press("/");
    expect(page.url()).toContain("settings/display");
    expect(await dialog(page).count()).toBe(0);
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog", { name: "Palette" }).waitFor();
    await page.evaluate(() => localStorage.clear());
    watched.clean();
  });

  test("a hold over everything stands above every page, and only lifting it takes it away", async () => {
    await plane.ask("/api/v1/nodes/register", {
      id: "quiet", team_id: "default", base_url: "http://127.0.0.1:9", version: "1.0.0", instance_id: "i-1", lifecycle_status: "starting",
      communication_config: { protocols: ["http"], heartbeat_interval: "2s" }, reasoners: [], skills: [],
    });
    await walk(page, "/ui/health");
    await page.getByPlaceholder("why").fill("moving the store");
    await page.getByRole("button", { name: /Hold everything/ }).dblclick();
    await until("the plane holds", async () => (await plane.ask<{ held: boolean }>("/api/v1/hold")).held);
    await page.goto("/ui/runs");
    await page.getByText(/moving the store/).first().waitFor();
    await shot(page, "hold-banner", false);
    await page.goto("/ui/queues");
    await page.getByRole("button", { name: /Lift the hold over everything/ }).click();
    await dialog(page).getByRole("textbox").fill("everything");
    await dialog(page).getByRole("button", { name: /^Lift/ }).dblclick();
    await until("it is lifted", async () => !(await plane.ask<{ held: boolean }>("/api/v1/hold")).held);
    await until("the banner goes by itself", async () => (await page.getByText(/moving the store/).count()) === 0);
    watched.clean();
  });
});
