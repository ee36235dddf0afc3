// A process of a test: its output is kept, its whole group ends with the test. Ends nothing else.
import { type ChildProcess, spawn } from "node:child_process";

/** Started processes that still run, by id; ended when the test process does. */
const running = new Set<number>();
process.on("exit", () => {
  for (const pid of running) killGroup(pid, "SIGKILL");
});

function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended already.
  }
}

export class Child {
  output = "";
  private readonly child: ChildProcess;
  private readonly ended: Promise<number | null>;

  constructor(
    readonly name: string,
    command: string[],
    options: { env?: Record<string, string>; cwd?: string } = {},
  ) {
    const [program, ...rest] = command;
    if (!program) throw new Error("no program");
    this.child = spawn(program, rest, {
      env: { ...quietEnvironment(), ...options.env },
      cwd: options.cwd,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const keep = (chunk: Buffer) => {
      this.output = (this.output + chunk.toString()).slice(-200_000);
    };
    this.child.stdout?.on("data", keep);
    this.child.stderr?.on("data", keep);
    this.ended = new Promise((resolve) => {
      this.child.once("exit", (code) => {
        if (this.child.pid) running.delete(this.child.pid);
        resolve(code);
      });
      this.child.once("error", (error) => {
        this.output += String(error);
        resolve(null);
      });
    });
    if (this.child.pid) running.add(this.child.pid);
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }
  get alive(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null && this.pid > 0;
  }
  /** Sends a signal to the process alone. */
  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
  wait(): Promise<number | null> {
    return this.ended;
  }
  /** Kills it with everything that it started, and waits. */
  async end(): Promise<void> {
    if (!this.pid) return;
    killGroup(this.pid, "SIGKILL");
    await this.ended;
  }
}

/** This process's environment without what would configure a plane or an agent. */
export function quietEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).filter(
    ([name, value]) => value !== undefined && !/^(MUSTER_|AGENTFIELD_|AGENT_|PORT|VITEST|NODE_OPTIONS)/.test(name),
  );
  return Object.fromEntries(entries) as Record<string, string>;
}
