// A Python program of `e2e/world/` that a test talks with: a line to it, a line of JSON back.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { quietEnvironment } from "./child";
import { python } from "./python";

export type Line = { error?: string } & Record<string, unknown>;

export class Spoken {
  private readonly waiting: ((line: Line) => void)[] = [];
  private readonly lines: Line[] = [];
  private errors = "";
  private readonly child: ReturnType<typeof spawn>;

  constructor(private readonly script: string, words: string[]) {
    const child = spawn(python(), [join(process.cwd(), "e2e", "world", script), ...words], { env: quietEnvironment(), stdio: ["pipe", "pipe", "pipe"], detached: true });
    this.child = child;
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
      for (const waiter of this.waiting.splice(0)) waiter({ error: `${this.script} ended\n${this.errors}` });
    });
  }

  /** What it says next. */
  async next(within: number): Promise<Line> {
    const said = this.lines.shift() ?? (await new Promise<Line>((resolve) => {
      const late = () => resolve({ error: `no answer of ${this.script} within ${within} ms\n${this.errors}` });
      const timer = setTimeout(late, within);
      this.waiting.push((line) => {
        clearTimeout(timer);
        resolve(line);
      });
    }));
    if (said.error) throw new Error(String(said.error));
    return said;
  }

  /** Says a line and waits for the answer. */
  async say(line: string, within = 90_000): Promise<Line> {
    this.child.stdin?.write(`${line}\n`);
    return this.next(within);
  }

  /** Ends it with everything that it started. */
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
