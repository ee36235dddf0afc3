// The demonstration world of a test: agents with the published Python SDK against its plane, and
// runs made on demand (`e2e/world/README.md` says which).
import type { Plane } from "./plane";
import { type Line, Spoken } from "./spoken";

export type Made = { run: string; execution: string; [more: string]: unknown };

export class World {
  private constructor(private readonly spoken: Spoken) {}

  /** Starts these agents (all when none is named) and makes these runs. */
  static async start(plane: Plane, options: { agents?: string[]; runs?: string[]; key?: string } = {}): Promise<{ world: World; runs: Record<string, Made> }> {
    const words = ["--url", plane.url, "--runs", (options.runs ?? []).join(",")];
    if (options.agents) words.push("--agents", options.agents.join(","));
    if (options.key) words.push("--key", options.key);
    const spoken = new Spoken("world.py", words);
    const first = await spoken.next(120_000).catch(async (error: unknown) => {
      await spoken.close();
      throw error;
    });
    return { world: new World(spoken), runs: (first.runs ?? {}) as Record<string, Made> };
  }

  /** One line of the world's language: `make trip`, `kill hotel`. */
  say(line: string, within?: number): Promise<Line> {
    return this.spoken.say(line, within);
  }

  /** Makes a run and answers with its ids. */
  async make(what: string, within?: number): Promise<Made> {
    const said = await this.say(`make ${what}`, within);
    return said[what.split(" ")[0] ?? ""] as Made;
  }

  /** Ends the world and every agent of it. */
  close(): Promise<void> {
    return this.spoken.close();
  }
}
