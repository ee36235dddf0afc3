// A large store: 100,000 executions, runs of 2,000 and 20,000 steps, 1,000 machines.
import { execFile } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export const LARGE = { executions: 100_000, nodes: 1_000, runs: [2_000, 20_000] } as const;

/** Fills a data folder of the test's own; remove it by closing the plane that runs on it. */
export async function largeStore(): Promise<string> {
  const program = process.env.MUSTER_XTASK;
  if (!program) throw new Error("set MUSTER_XTASK to xtask built with --features bench, or run `cargo xtask test`");
  const data = await mkdtemp(join(tmpdir(), "muster-large-"));
  const words = ["fill", "--data", data, "--executions", String(LARGE.executions), "--nodes", String(LARGE.nodes)];
  for (const steps of LARGE.runs) words.push("--run-of", String(steps));
  await promisify(execFile)(program, words, { timeout: 170_000 });
  return data;
}
