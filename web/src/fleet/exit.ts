// How a worker ended, in a few words, from what its node or the plane saw. What nobody saw is said.
import type { Worker } from "./shapes";

export function endOf({ exit, ended_how, state }: Pick<Worker, "exit" | "ended_how" | "state">): string {
  if (exit?.code !== null && exit?.code !== undefined) return `exited with ${exit.code}`;
  if (exit?.signal !== null && exit?.signal !== undefined) return `ended by signal ${exit.signal}`;
  if (exit?.reason) return exit.reason;
  if (ended_how) return `ended: ${ended_how.replaceAll("_", " ")}`;
  return state === "lost" ? "lost with its node: nobody saw it end" : "nobody saw it end";
}

/** The last lines of an output, for a glance. */
export function lastLines(output: string, most = 12): { text: string; more: number } {
  const lines = (output ?? "").replace(/\s+$/, "").split("\n");
  return lines.length <= most
    ? { text: lines.join("\n"), more: 0 }
    : { text: lines.slice(-most).join("\n"), more: lines.length - most };
}
