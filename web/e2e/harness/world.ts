// The demonstration world of a test: agents with the published Python SDK against its plane, and
// runs made on demand (`e2e/world/README.md` says which).
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Plane } from "./plane";
import { quietEnvironment } from "./child";
import { python } from "./python";

export type Made = { run: string; execution: string; [more: string]: unknown };
type Line = { agents?: string[]; runs?: Record<string, Made>; error?: string } & Record<string, unknown>;

export class World {
  private readonly waiting: ((line: Line) => void)[] = [];
  private readonly lines: Line[] = [];
  private errors = "";
  private constructor(private readonly child: ReturnType<typeof spawn>) {
    if (!child.stdout || !child.stderr) throw new Error("the world has no output");
    createInterface({ input: child.stdout }).on("line", (text) => {
      let line: Line;
      try {
        line = JSON.parse(text) as Line;
      } catch {
        line = { error: `no JSON: ${text}` };
      }
      const waiter = this.waiting.shift();
      if (waiter) waiter(line);
      else this.lines.push(line);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      this.errors = (this.errors + chunk.toString()).slice(-100_000);
    });
    child.once("exit", () => {
      for (const waiter of this.waiting.splice(0)) waiter({ error: `the world ended\n${this.errors}` });
    });
  }

  /** Starts these agents (all when none is named) and makes these runs. */
  static async start(plane: Plane, options: { agents?: string[]; runs?: string[]; key?: string } = {}): Promise<{ world: World; runs: Record<string, Made> }> {
    const script = join(process.cwd(), "e2e", "world", "world.py");
    const words = [script, "--url", plane.url, "--runs", (options.runs ?? []).join(",")];
    if (options.agents) words.push("--agents", options.agents.join(","));
    if (options.key) words.push("--key", options.key);
    const child = spawn(python(), words, { env: quietEnvironment(), stdio: ["pipe", "pipe", "pipe"], detached: true });
    const world = new World(child);
    const first = await world.next(120_000);
    return { world, runs: first.runs ?? {} };
  }

  private next(within: number): Promise<Line> {
    const ready = this.lines.shift();
    const line = ready
      ? Promise.resolve(ready)
      : new Promise<Line>((resolve) => {
          const timer = setTimeout(() => resolve({ error: `no answer of the world within ${within} ms\n${this.errors}` }), within);
          this.waiting.push((line) => {
            clearTimeout(timer);
            resolve(line);
          });
        });
    return line.then((said) => {
      if (said.error) throw new Error(String(said.error));
      return said;
    });
  }

  /** One line of the world's language: `make trip`, `kill hotel`. */
  async say(line: string, within = 90_000): Promise<Line> {
    this.child.stdin?.write(`${line}\n`);
    return this.next(within);
  }

  /** Makes a run and answers with its ids. */
  async make(what: string, within?: number): Promise<Made> {
    const said = await this.say(`make ${what}`, within);
    return said[what.split(" ")[0] ?? ""] as Made;
  }

  /** Ends the world and every agent of it. */
  async close(): Promise<void> {
    this.child.stdin?.end();
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    const late = new Promise((resolve) => setTimeout(resolve, 8_000));
    if (this.child.exitCode === null) await Promise.race([ended, late]);
    if (this.child.pid) {
      try {
        process.kill(-this.child.pid, "SIGKILL");
      } catch {
        // All of it has ended.
      }
    }
  }
}
