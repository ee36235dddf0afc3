// The plane under test: the real binary (`MUSTER_BINARY`) on a free loopback port, with a data
// folder of its own. Keeps both over a kill and a start.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Child } from "./child";
import { freePort, until } from "./waiting";

export function binary(): string {
  const named = process.env.MUSTER_BINARY;
  if (!named) throw new Error("set MUSTER_BINARY to the muster binary under test, or run `cargo xtask test`");
  return named;
}

export class Plane {
  private readonly past: Child[] = [];
  private constructor(
    readonly data: string,
    readonly port: number,
    private readonly settings: Record<string, string>,
    readonly host: string,
    private readonly config: string | undefined,
  ) {}

  static async start(
    options: { settings?: Record<string, string>; data?: string; host?: string; /** A file in place of a `muster.toml`. */ config?: string } = {},
  ): Promise<Plane> {
    const data = options.data ?? (await mkdtemp(join(tmpdir(), "muster-e2e-")));
    const plane = new Plane(data, await freePort(), options.settings ?? {}, options.host ?? "127.0.0.1", options.config);
    await plane.again();
    return plane;
  }

  get url(): string {
    return `http://${this.host}:${this.port}`;
  }
  get child(): Child {
    const child = this.past.at(-1);
    if (!child) throw new Error("the plane was not started");
    return child;
  }

  /** Starts it, at first or after it ended. */
  async again(): Promise<void> {
    const env: Record<string, string> = {};
    for (const [name, value] of Object.entries(this.settings)) {
      env[`MUSTER_${name.toUpperCase().replaceAll(".", "__")}`] = value;
    }
    const command = [binary(), "server", "--listen", `${this.host}:${this.port}`, "--data", this.data];
    if (this.config) command.push("--config", this.config);
    this.past.push(new Child("plane", command, { env }));
    await until("the plane is ready", async () => {
      if (!this.child.alive) throw new Error(`the plane ended at its start\n${this.child.output}`);
      return (await fetch(`${this.url}/readyz`)).ok;
    });
  }

  async kill9(): Promise<void> {
    this.child.signal("SIGKILL");
    await this.child.wait();
  }

  /** The owner's key, as the plane wrote it at its first start. */
  async ownerKey(): Promise<string> {
    return (await readFile(join(this.data, "owner.key"), "utf8")).trim();
  }

  /** Asks the plane as its owner; a body makes it a POST. Fails on what is no success. */
  async ask<T = Record<string, unknown>>(path: string, body?: unknown, method?: string): Promise<T> {
    const answer = await fetch(this.url + path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: { "x-api-key": await this.ownerKey(), "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: HTTP ${answer.status} ${text.slice(0, 500)}`);
    return (text ? JSON.parse(text) : undefined) as T;
  }

  /** Calls a function and does not wait for its end. */
  call(target: string, input: object): Promise<{ run_id: string; execution_id: string }> {
    return this.ask(`/api/v1/execute/async/${target}`, { input });
  }

  async stateOf(execution: string): Promise<string> {
    return (await this.ask<{ state: string }>(`/api/v1/executions/${execution}`)).state;
  }
  async untilState(execution: string, state: string, within?: number): Promise<void> {
    await until(`${execution} is ${state}`, async () => (await this.stateOf(execution)) === state, within);
  }

  /** One series of its metrics, named with its labels: their order in the text changes with each start. */
  async metric(series: string): Promise<number> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const line = text.split("\n").find((each) => each.startsWith(`${series} `));
    return line === undefined ? Number.NaN : Number(line.slice(series.length + 1));
  }

  /** Runs the command line against this plane; answers with what it printed. */
  async muster(...args: string[]): Promise<string> {
    const child = new Child("muster", [binary(), ...args, "--server", this.url], {
      env: { MUSTER_API_KEY: await this.ownerKey() },
    });
    const code = await child.wait();
    if (code !== 0) throw new Error(`muster ${args.join(" ")}: exit ${code}\n${child.output}`);
    return child.output;
  }

  async close(): Promise<void> {
    for (const child of this.past) await child.end();
    await rm(this.data, { recursive: true, force: true });
  }
}
