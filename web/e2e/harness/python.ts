// Agents with the published Python SDK, from the environment that the tests installed.
import { existsSync } from "node:fs";
import { join } from "node:path";

/** The interpreter with the SDK: `MUSTER_PYTHON`, else the project's own environment. */
export function python(): string {
  const named = process.env.MUSTER_PYTHON;
  const own = join(process.cwd(), "..", ".test", "venv", "bin", "python");
  const found = named ?? (existsSync(own) ? own : undefined);
  if (!found) throw new Error("set MUSTER_PYTHON to a Python with the agentfield SDK, or run `cargo xtask test`");
  return found;
}
