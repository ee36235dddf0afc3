// Every page at 320 px and at 200 % zoom: nothing is wider than the window, the title and the way
// around stay in sight; and in the dark at a desk, nothing serious in axe.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dialog } from "./harness/act";
import { type OpenOptions, type Watched, accessibility, shot } from "./harness/browser";
import { measured, sideways } from "./harness/look";
import type { Plane } from "./harness/plane";
import { openRun } from "./harness/run-page";
import { Scene, end, visit, walk } from "./harness/scene";
import { until } from "./harness/waiting";
import type { Made } from "./harness/world";

let plane: Plane;
let runs: Record<string, Made>;
let step = "";

beforeAll(async () => {
  ({ plane, runs } = await Scene.begin({ agents: ["trip", "weather", "geo", "hotel", "report"], runs: ["failed", "restarted", "hostile"], page: false }));
  await plane.ask("/api/v1/hold", { agent: "hotel", reason: "the provider is down, and this reason is as long as people write them when they are in a hurry" });
  for (let n = 0; n < 3; n += 1) await plane.call("hotel.search", { city: "Lyon" });
  step = runs.failed?.execution ?? "";
});
afterAll(end);

const SECTIONS = ["keys", "nodes", "display", "tags", "audit", "configuration", "about"].map((section) => `/ui/settings/${section}`);
const PAGES = [
  "/ui/", "/ui/runs", "/ui/runs?v=executions", "/ui/agents", "/ui/agents/hotel?why=1", "/ui/agents/hotel/call/book", "/ui/fleet", "/ui/fleet?spawn=1",
  "/ui/queues", "/ui/queues/hotel?why=1", "/ui/usage", "/ui/health", "/ui/login", "/ui/nowhere", ...SECTIONS,
];
const named = (path: string) => path.replace(/^\/ui\//, "").replaceAll(/\W+/g, "-") || "overview";
/** Those of one run; their ids are made when the tests begin. */
const ofRun = () => {
  const run = runs.failed?.run;
  return [
    ...["list", "time", "tree"].map((view) => `/ui/runs/${run}?view=${view}`), `/ui/runs/${run}?view=list&step=${step}&tab=why`,
    `/ui/runs/${runs.hostile?.run}?view=list&step=${runs.hostile?.execution}&tab=output`, `/ui/compare?a=${run}&b=${runs.restarted?.run}`,
  ];
};

const on = (options: OpenOptions, look: (watched: Watched) => Promise<void>) => visit(plane, look, { owner: true, wanted: /404/, ...options });

describe.each([
  ["320 px", { width: 320, height: 640, touch: true }],
  // What a window of 1,440 px is at 200 %.
  ["200 % zoom", { width: 720, height: 450 }],
] as const)("at %s", (what, size) => {
  test("no page scrolls sideways", async () => {
    await on(size, async ({ page }) => {
      const wrong: string[] = [];
      for (const path of [...PAGES, ...ofRun()]) {
        await walk(page, path);
        await measured(page);
        for (const each of await sideways(page)) wrong.push(`${path}: ${each}`);
        if (!path.includes("login")) {
          const title = await page.locator("h1").first().boundingBox({ timeout: 2_000 }).catch(() => null);
          if (!title || title.x < 0 || title.x >= size.width || title.y > size.height) wrong.push(`${path}: its title is not in sight: ${(await page.locator("main").innerText()).slice(0, 200)}`);
          if ((await page.getByRole("navigation").first().getByRole("link").count()) === 0) wrong.push(`${path}: no way around`);
        }
        await shot(page, `reflow-${what.replaceAll(/\W+/g, "")}-${named(path).replaceAll(/run_\w+|exec_\w+/g, "")}`);
      }
      expect(wrong).toEqual([]);
    });
  }, 240_000);

  test("layers fit too: a dialog, a popover, the search and the keys", async () => {
    await on(size, async ({ page }) => {
      const fits = async (name: string) => {
        const layer = dialog(page).last();
        await layer.waitFor();
        await measured(page);
        const box = await layer.boundingBox();
        expect(box && box.x >= 0 && box.x + box.width <= size.width + 1 && box.y >= 0, `${name}: ${JSON.stringify(box)}`).toBe(true);
        expect(await layer.evaluate((box) => box.scrollWidth - box.clientWidth), name).toBeLessThanOrEqual(1);
        // Level by level: a menu may be under it.
        while ((await dialog(page).count()) > 0) {
          const many = await dialog(page).count();
          await page.keyboard.press("Escape");
          await until("a level less", async () => (await dialog(page).count()) < many);
        }
      };
      await page.goto(`/ui/runs/${runs.failed?.run}?view=list`);
      await page.locator("[data-counts]").waitFor();
      if (size.width < 640) {
        await page.getByRole("button", { name: "What can be done" }).click();
        await page.getByRole("button", { name: /^Restart/ }).click();
      } else await page.keyboard.press("Shift+R");
      await dialog(page).getByText(/reuses \d/).first().waitFor();
      await fits("restart");
      await page.keyboard.press("/");
      await fits("search");
      await page.keyboard.press("?");
      await fits("keys");
      await page.goto("/ui/agents/hotel");
      await page.getByRole("button", { name: /^Unhold/ }).click();
      await dialog(page).getByText(/3 queued executions go out/).waitFor();
      await fits("unhold");
    });
  });
});

test("in the dark at a desk: nothing serious in axe on any page", async () => {
  await on({ theme: "dark" }, async ({ page }) => {
    const wrong: string[] = [];
    for (const path of [...PAGES, ...ofRun()]) {
      await walk(page, path);
      for (const each of await accessibility(page)) wrong.push(`${path}: ${each}`);
    }
    expect(wrong).toEqual([]);
  });
}, 300_000);

test("contrast, computed anew from what is drawn: words 4.5 in both themes, controls 3", async () => {
  await on({}, async ({ page }) => {
    for (const theme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: theme });
      for (const path of ["/ui/", "/ui/runs", "/ui/agents", "/ui/queues", `/ui/runs/${runs.failed?.run}?view=list`]) {
        await walk(page, path);
        const poor = await until(`${path} is drawn`, () => page.evaluate(lowContrast));
        expect(poor.low, `${theme} ${path}, of ${poor.seen} texts`).toEqual([]);
        expect(poor.seen).toBeGreaterThan(10);
      }
    }
  });
});

test("in colours of the reader's system: what is told by a filled area is still told, what is marked has a frame", async () => {
  await on({}, async ({ page }) => {
    /** Filled areas with nothing of their own paint left, of how many. */
    const faded = () => page.locator(".painted").evaluateAll((all) => ({
      all: all.length,
      faded: all.filter((each) => {
        const { backgroundColor: paint, backgroundImage: hatch } = getComputedStyle(each);
        return (paint === "rgba(0, 0, 0, 0)" || paint === "rgb(255, 255, 255)") && hatch === "none" && each.children.length === 0;
      }).map((each) => each.outerHTML.slice(0, 120)),
    }));
    await page.emulateMedia({ forcedColors: "active" });
    for (const [path, least] of [["/ui/", 1], ["/ui/health", 4]] as const) {
      await walk(page, path);
      const seen = await until(`${path} is drawn`, async () => { const now = await faded(); return now.all >= least && now; });
      expect(seen.faded, path).toEqual([]);
    }
    const frame = (selector: string) => page.locator(selector).first().evaluate((each) => getComputedStyle(each).outlineStyle);
    expect(await frame("nav [aria-current]")).toBe("solid");
    await openRun(page, runs.failed?.run ?? "", `view=list&step=${step}`);
    await page.locator("[role=row][aria-selected=true]").waitFor();
    expect(await frame("[role=row][aria-selected=true]")).toBe("solid");
    expect(await accessibility(page)).toEqual([]);
    await shot(page, "forced-colours-run", false);
  });
});

/** Runs in the page: texts and borders of controls whose contrast with what is behind them is too low. */
function lowContrast(): { seen: number; low: string[] } {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true }) as CanvasRenderingContext2D;
  type Colour = [number, number, number, number];
  const read = (text: string): Colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r = 0, g = 0, b = 0, a = 0] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top: Colour, under: Colour): Colour => [0, 1, 2].map((at) => (top[at] as number) * top[3] + (under[at] as number) * (1 - top[3])).concat(1) as Colour;
  const luminance = ([r, g, b]: Colour) => {
    const part = (value: number) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ratio = (a: Colour, b: Colour) => {
    const [x, y] = [luminance(a), luminance(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const behind = (element: Element | null): Colour => (element ? over(read(getComputedStyle(element).backgroundColor), behind(element.parentElement)) : [255, 255, 255, 1]);
  const low: string[] = [];
  let seen = 0;
  for (const element of document.querySelectorAll<HTMLElement>("body *")) {
    if (element.closest(".visually-hidden, [aria-disabled=true], :disabled, svg") || element.getClientRects().length === 0) continue;
    const look = getComputedStyle(element);
    const says = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && (node.textContent ?? "").trim() !== "");
    if (says) {
      seen += 1;
      const ground = behind(element);
      const found = ratio(over(read(look.color), ground), ground);
      if (found < 4.5) low.push(`${found.toFixed(2)} ${element.tagName.toLowerCase()}.${element.className} "${(element.textContent ?? "").slice(0, 40)}"`);
    }
    if (element.matches(".button, .field") && Number.parseFloat(look.borderTopWidth) > 0) {
      const ground = behind(element.parentElement);
      const found = ratio(over(read(look.borderTopColor), ground), ground);
      if (found < 3) low.push(`${found.toFixed(2)} border of "${(element.textContent ?? element.getAttribute("aria-label") ?? "").slice(0, 40)}"`);
    }
  }
  return { seen, low };
}
