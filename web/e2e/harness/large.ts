// A large store: 100,000 executions, runs of 2,000, 20,000 and 30,000 steps and one of 200 to
// compare them with, 1,000 machines.
import { execFile } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export const LARGE = { executions: 100_000, nodes: 1_000, small: 200, runs: [2_000, 20_000, 30_000] } as const;

/** Fills a data folder of the test's own; remove it by closing the plane that runs on it. */
export async function largeStore(): Promise<string> {
  const program = process.env.MUSTER_XTASK;
  if (!program) throw new Error("set MUSTER_XTASK to xtask built with --features bench, or run `cargo xtask test`");
  const data = await mkdtemp(join(tmpdir(), "muster-large-"));
  const words = ["fill", "--data", data, "--executions", String(LARGE.executions), "--nodes", String(LARGE.nodes)];
  for (const steps of [LARGE.small, ...LARGE.runs]) words.push("--run-of", String(steps));
  await promisify(execFile)(program, words, { timeout: 170_000 });
  return data;
}

/** What took so long, of what is large and of what is small, in the same minute on the same machine. */
export type Pair = { what: string; large: number; small: number };

/** Fails where the large one is over its budget and over so many times the small one as well: a busy
 *  machine makes both slow, a page that grows with its store only one. Answers with the figures. */
export function inProportion({ what, large, small }: Pair, budget: number, times: number): string {
  const said = `${what}: ${large.toFixed(0)} ms, small ${small.toFixed(0)} ms (budget ${budget} ms, or ${times} times the small one)`;
  if (large > Math.max(budget, small * times)) throw new Error(said);
  return said;
}
