// What a test file stands on: a plane, agents, a browser with its owner signed in. Begun before the
// tests of a file, ended after them, in the reverse order and also when the beginning failed.
import type { Page } from "playwright-core";
import { type OpenOptions, type Watched, closeBrowser, open } from "./browser";
import { settled } from "./look";
import { Plane } from "./plane";
import { type Made, World } from "./world";

export type SceneOptions = Parameters<typeof Plane.start>[0] & {
  /** Agents of the demonstration world; `true`: all of them. */
  agents?: string[] | true;
  /** Runs that are made before the first test. */
  runs?: string[];
  /** A browser for the whole file; `false`: each look opens its own. */
  page?: OpenOptions | false;
};

type Ended = () => unknown;
const ends: Ended[] = [];

/** Ends this too when the file's tests are done; what was begun last ends first. */
export function after(end: Ended): void {
  ends.push(end);
}

/** Ends everything that was begun: give it to `afterAll`. */
export async function end(): Promise<void> {
  const failed: unknown[] = [];
  for (const each of ends.splice(0).reverse()) await Promise.resolve().then(each).catch((error: unknown) => failed.push(error));
  await closeBrowser();
  if (failed.length > 0) throw failed[0];
}

export type LookOptions = OpenOptions & {
  /** Where the look begins. */
  at?: string;
  /** Signs in with the owner's key. */
  owner?: boolean;
  /** What goes wrong because the test wants it; everything else fails the look. */
  wanted?: RegExp;
};

/** What a failed request leaves on the console: the browser's words, not the page's. */
export const UNREACHED = /Failed to load resource|net::ERR|CONNECTION/;

/** What can be visited: a plane, or what stands before one. */
export type Place = { readonly url: string; ownerKey?(): Promise<string> };

/** Opens a profile of its own on a plane, looks, and fails on any fault that was not wanted. */
export async function visit<T>(place: Place, look: (watched: Watched) => Promise<T>, options: LookOptions = {}): Promise<T> {
  const watched = await open(place.url, options.owner ? { ...options, key: await place.ownerKey?.() } : options);
  try {
    if (options.at) await watched.page.goto(options.at);
    const seen = await look(watched);
    if (options.wanted) watched.forgive(options.wanted);
    watched.clean();
    return seen;
  } finally {
    await watched.close();
  }
}

/** Goes to a page and waits until nothing of it is loading any more. */
export async function walk(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await settled(page);
}

export class Scene {
  private constructor(
    readonly plane: Plane,
    private readonly peopled: { world: World; runs: Record<string, Made> } | undefined,
    private readonly opened: Watched | undefined,
  ) {}

  static async begin({ agents, runs, page = {}, ...options }: SceneOptions = {}): Promise<Scene> {
    const plane = await Plane.start(options);
    after(() => plane.close());
    const key = await plane.ownerKey();
    const peopled = agents && (await World.start(plane, { key, agents: agents === true ? undefined : agents, runs }));
    if (peopled) after(() => peopled.world.close());
    const watched = page ? await open(plane.url, { key, ...page }) : undefined;
    if (watched) after(() => watched.close());
    return new Scene(plane, peopled, watched);
  }

  get world(): World {
    return told(this.peopled, "no agents were named").world;
  }
  /** The runs that were made before the first test. */
  get runs(): Record<string, Made> {
    return told(this.peopled, "no agents were named").runs;
  }
  get watched(): Watched {
    return told(this.opened, "this scene has no page of its own");
  }
  get page(): Page {
    return this.watched.page;
  }
}

function told<T>(what: T | undefined, why: string): T {
  if (what === undefined) throw new Error(why);
  return what;
}
