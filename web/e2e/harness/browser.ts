// The browser: real Chromium, headless. Every page of it is watched: errors on the console,
// violations of the content security policy and requests to another origin are failures of the
// test that opened it, unless the test says that it expects them.
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { type Browser, type BrowserContext, type Page, chromium } from "playwright-core";

const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

export type Theme = "light" | "dark";
export const WIDTHS = { desktop: 1440, laptop: 1024, phone: 390 } as const;

let launched: Promise<Browser> | undefined;

async function browser(): Promise<Browser> {
  launched ??= chromium.launch({
    executablePath: process.env.CHROMIUM ?? PROGRAMS[0],
    // A page that does not come from the plane itself may else open no socket to loopback.
    args: process.env.MUSTER_PAGE ? [...FLAGS, "--disable-features=LocalNetworkAccessChecks"] : FLAGS,
  });
  return launched;
}

/** Closes the browser; call it when the file's tests are done. */
export async function closeBrowser(): Promise<void> {
  const was = await launched?.catch(() => undefined);
  launched = undefined;
  await was?.close();
}

export type Watched = {
  context: BrowserContext;
  page: Page;
  /** What went wrong so far. */
  faults: string[];
  /** Fails when anything went wrong. */
  clean(): void;
  /** Forgets what went wrong so far, or what of it fits: the test made it happen. */
  forgive(what?: RegExp): void;
  close(): Promise<void>;
};

export type OpenOptions = {
  width?: number;
  height?: number;
  theme?: Theme;
  /** Signs in with this key before the first page. */
  key?: string;
  reducedMotion?: boolean;
  touch?: boolean;
};

/** A new profile of the browser with one page. `url` is the plane's. */
export async function open(url: string, options: OpenOptions = {}): Promise<Watched> {
  const context = await (await browser()).newContext({
    baseURL: url,
    viewport: { width: options.width ?? WIDTHS.desktop, height: options.height ?? 900 },
    colorScheme: options.theme ?? "light",
    reducedMotion: options.reducedMotion === false ? "no-preference" : "reduce",
    hasTouch: options.touch ?? false,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const faults: string[] = [];
  if (options.key) {
    const answer = await context.request.post("/api/v1/session", {
      data: { key: options.key },
      headers: { origin: url },
    });
    if (!answer.ok()) throw new Error(`sign-in: HTTP ${answer.status()} ${await answer.text()}`);
  }
  await replacePage(context);
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  watch(page, new URL(url).origin, faults);
  context.on("page", (other) => watch(other, new URL(url).origin, faults));
  return {
    context,
    page,
    faults,
    clean() {
      const found = faults.splice(0);
      if (found.length > 0) throw new Error(`the page had faults:\n${found.join("\n")}`);
    },
    forgive(what) {
      const kept = what ? faults.filter((each) => !what.test(each)) : [];
      faults.splice(0, faults.length, ...kept);
    },
    async close() {
      // A route's handler that is still under way has nothing left to answer; that is no fault.
      for (const routed of [...context.pages(), context]) await routed.unrouteAll({ behavior: "ignoreErrors" });
      await context.close();
    },
  };
}

const KINDS: Record<string, string> = { js: "text/javascript", css: "text/css", svg: "image/svg+xml", html: "text/html" };

/** `MUSTER_PAGE`: a folder with a built page that is tested in place of the binary's own, with its policy. */
async function replacePage(context: BrowserContext): Promise<void> {
  const built = process.env.MUSTER_PAGE;
  if (!built) return;
  await context.route(/\/ui\/assets\//, async (route) => {
    const name = new URL(route.request().url()).pathname.replace("/ui/", "");
    await route.fulfill({ body: await readFile(join(built, name)), contentType: KINDS[name.split(".").at(-1) ?? ""] ?? "application/octet-stream" });
  });
  await context.route(/\/ui\/(?!assets\/)/, async (route) => {
    const answer = await route.fetch({ maxRedirects: 0 });
    const nonce = /'nonce-([^']+)'/.exec(answer.headers()["content-security-policy"] ?? "")?.[1];
    if (!nonce) return route.fulfill({ response: answer });
    await route.fulfill({ response: answer, body: (await readFile(join(built, "index.html"), "utf8")).replaceAll("__MUSTER_NONCE__", nonce) });
  });
}

const watchedPages = new WeakSet<Page>();

function watch(page: Page, origin: string, faults: string[]): void {
  if (watchedPages.has(page)) return;
  watchedPages.add(page);
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.stack ?? error.message}`));
  page.on("request", (request) => {
    const url = new URL(request.url());
    const own = url.origin === origin || ["data:", "blob:"].includes(url.protocol) || url.host === new URL(origin).host;
    if (!own) faults.push(`request to another origin: ${request.url()}`);
  });
}

const SHOTS = process.env.MUSTER_SCREENSHOTS ?? join(process.cwd(), "..", ".test", "screenshots");

/** Keeps a picture of the page, to be looked at after the run. */
export async function shot(page: Page, name: string, full = true): Promise<void> {
  await mkdir(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: full, animations: "disabled" });
}

const axeSource = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Findings of axe that are serious or critical, one a line. */
export async function accessibility(page: Page): Promise<string[]> {
  // Evaluated by the debugger, which the content security policy of the page does not bind.
  const source = await readFile(axeSource, "utf8");
  await page.evaluate(source);
  return page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run(context: Document, options: object): Promise<{ violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[] }> } }).axe;
    const found = await axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    });
    return found.violations
      .filter((each) => each.impact === "serious" || each.impact === "critical")
      .flatMap((each) => each.nodes.map((node) => `${each.id} (${each.impact}) ${node.target.join(" ")}: ${node.failureSummary}`));
  });
}
