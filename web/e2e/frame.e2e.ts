// The frame around the pages: it is served as it should be, leads everywhere, and says so when
// there is no such page.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Plane } from "./harness/plane";
import { Scene, end, visit } from "./harness/scene";

let plane: Plane;
beforeAll(async () => {
  ({ plane } = await Scene.begin({ page: false }));
});
afterAll(end);

describe("how the dashboard is served", () => {
  test("a person at the root is led to it, a program is not", async () => {
    await visit(plane, async ({ page }) => expect(new URL(page.url()).pathname).toBe("/ui/"), { at: "/" });
    const program = await fetch(plane.url, { headers: { accept: "application/json" } });
    expect(program.status).toBe(404);
  });

  test("each page has a policy with a nonce of its own, and is not kept", async () => {
    const nonces = new Set<string>();
    for (let turn = 0; turn < 2; turn += 1) {
      const answer = await fetch(`${plane.url}/ui/`, { headers: { accept: "text/html" } });
      const policy = answer.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(answer.headers.get("cache-control")).toContain("no-store");
      nonces.add(/'nonce-([^']+)'/.exec(policy)?.[1] ?? "");
    }
    expect(nonces.size).toBe(2);
    expect(nonces.has("")).toBe(false);
  });

  test("every place of the rail opens without a fault", async () => {
    await visit(plane, async ({ page }) => {
      await page.getByRole("navigation").first().waitFor();
      const links = await page.getByRole("navigation").first().getByRole("link").all();
      expect(links.length).toBeGreaterThanOrEqual(7);
      for (const link of links) {
        await link.click();
        await page.getByRole("heading", { level: 1 }).first().waitFor();
      }
    }, { at: "/ui/" });
  });
});
