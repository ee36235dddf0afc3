// The frame around the pages: it is served as it should be, leads everywhere, and says so when
// there is no such page.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Watched, WIDTHS, closeBrowser, open } from "./harness/browser";
import { Plane } from "./harness/plane";

let plane: Plane;
beforeAll(async () => {
  plane = await Plane.start();
});
afterAll(async () => {
  await closeBrowser();
  await plane?.close();
});

async function on<T>(path: string, look: (watched: Watched) => Promise<T>, width: number = WIDTHS.desktop): Promise<T> {
  const watched = await open(plane.url, { width });
  try {
    await watched.page.goto(path);
    const seen = await look(watched);
    watched.clean();
    return seen;
  } finally {
    await watched.close();
  }
}

describe("how the dashboard is served", () => {
  test("a person at the root is led to it, a program is not", async () => {
    await on("/", async ({ page }) => expect(new URL(page.url()).pathname).toBe("/ui/"));
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
    await on("/ui/", async ({ page }) => {
      await page.getByRole("navigation").first().waitFor();
      const links = await page.getByRole("navigation").first().getByRole("link").all();
      expect(links.length).toBeGreaterThanOrEqual(7);
      for (const link of links) {
        await link.click();
        await page.getByRole("heading", { level: 1 }).first().waitFor();
      }
    });
  });
});
