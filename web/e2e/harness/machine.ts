// A machine of the fleet: the real daemon on this one, enrolled with a token of the plane.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Child } from "./child";
import { type Plane, binary } from "./plane";
import { until } from "./waiting";

export type Node = { id: string; name: string; state: string; wish: string; pin?: { state: string } | null };
export type Worker = { id: string; name: string; state: string; pid: number | null; restarts: number; ended_at: string | null };

export class Machine {
  private constructor(
    private readonly plane: Plane,
    readonly name: string,
    /** Where its daemon keeps what it knows. */
    readonly home: string,
    public daemon: Child,
  ) {}

  /** Enrols under this name and starts the daemon; `token`: one that was made elsewhere. */
  static async start(plane: Plane, name: string, options: { workers?: number; token?: string } = {}): Promise<Machine> {
    const token = options.token ?? (await plane.ask<{ token: string }>("/api/v1/fleet/enrollments", { name, max_workers: options.workers ?? 4 })).token;
    const home = await mkdtemp(join(tmpdir(), "muster-node-"));
    const enrol = new Child("enrol", [binary(), "node", "enroll", "--plane", plane.url, "--token", token, "--state", home]);
    if ((await enrol.wait()) !== 0) throw new Error(`${name} was not enrolled\n${enrol.output}`);
    return new Machine(plane, name, home, Machine.run(home));
  }

  private static run(home: string): Child {
    return new Child("node", [binary(), "node", "run", "--state", home]);
  }

  /** Starts the daemon again. */
  async again(): Promise<void> {
    await this.daemon.end();
    this.daemon = Machine.run(this.home);
  }

  /** As the plane tells it; by its id after it was retired. */
  now(id = this.name): Promise<Node> {
    return this.plane.ask<Node>(`/api/v1/fleet/nodes/${id}`);
  }
  async online(): Promise<void> {
    await until(`${this.name} is online`, async () => (await this.now()).state === "online");
  }

  /** A worker on it that runs; its id. */
  async spawn(name: string, command: string, args: string[], more: object = {}): Promise<Worker> {
    const { worker } = await this.plane.ask<{ worker: Worker }>("/api/v1/fleet/workers", { command, args, name, node: this.name, ...more });
    return until(`${name} runs`, async () => {
      const now = await this.worker(worker.id);
      return now.state === "running" && now;
    });
  }
  worker(id: string): Promise<Worker> {
    return this.plane.ask<Worker>(`/api/v1/fleet/workers/${id}`);
  }

  /** Ends what it runs, which would outlive its daemon, then the daemon. */
  async close(): Promise<void> {
    if (this.daemon.alive && this.plane.child.alive) {
      // None, when the machine itself is deleted.
      const left = () => this.plane.ask<{ workers: Worker[] }>(`/api/v1/fleet/workers?node=${this.name}`).then(({ workers }) => workers.filter((worker) => worker.ended_at === null), () => []);
      for (const worker of await left()) await this.plane.ask(`/api/v1/fleet/workers/${worker.id}/release`, {}).catch(() => undefined);
      await until("every worker has ended", async () => (await left()).length === 0).catch(() => undefined);
    }
    await this.daemon.end();
    await rm(this.home, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}
