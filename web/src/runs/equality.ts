// Whether the payloads of a pair are equal: read when a pair comes into sight, a few at a time,
// compared in their canonical form, and remembered. Large ones are compared only when they are opened.
import { useEffect, useSyncExternalStore } from "react";
import { Problem } from "@/api/problem";
import { canonicalLines } from "@/execution/json/canonical";
import { type PayloadKind, readPayload, textOf } from "@/execution/payload";
import { isOpen } from "./forest";
import { type Pair, isReplay } from "./pairing";

export type Verdict =
  | "equal" | "different"
  /** One side has none. */
  | "one"
  /** Neither side has one. */
  | "none"
  /** Too large to compare without being asked. */
  | "large"
  /** Could not be read: gone, or no answer. */
  | "unknown"
  | "pending";

const PART = 64 * 1024;
const AT_ONCE = 4;

type Side = { is: "text"; text: string } | { is: "none" } | { is: "large" } | { is: "unknown" };

export async function readWhole(id: string, kind: PayloadKind, most: number, signal?: AbortSignal): Promise<Side> {
  try {
    const part = await readPayload(id, kind, 0, most, signal);
    if (part.is === "none") return { is: "none" };
    if (part.is === "gone") return { is: "unknown" };
    if (part.total > part.bytes.length) return { is: "large" };
    const { text, utf8 } = textOf(part.bytes, true);
    return utf8 ? { is: "text", text } : { is: "unknown" };
  } catch (error) {
    if (signal?.aborted) throw error;
    return Problem.of(error).notFound ? { is: "none" } : { is: "unknown" };
  }
}

export function verdictOf(a: Side, b: Side): Verdict {
  if (a.is === "unknown" || b.is === "unknown") return "unknown";
  if (a.is === "none" && b.is === "none") return "none";
  if (a.is === "none" || b.is === "none") return "one";
  if (a.is === "large" || b.is === "large") return a.is === b.is ? "large" : "different";
  if (a.text === b.text) return "equal";
  return canonicalLines(a.text).join("\n") === canonicalLines(b.text).join("\n") ? "equal" : "different";
}

export class Equality {
  private readonly known = new Map<string, Verdict>();
  private readonly waiting: (() => Promise<void>)[] = [];
  private running = 0;
  private version = 0;
  private readonly listeners = new Set<() => void>();
  private readonly stop = new AbortController();

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
  readonly now = () => this.version;

  /** What is known of a pair's payloads; asks for it when nothing is. */
  of(pair: Pair, kind: "input" | "result"): Verdict | null {
    const { a, b } = pair;
    if (!a || !b) return null;
    if (a.id === b.id || isReplay(a, b)) return "equal";
    if (kind === "result" && (isOpen(a) || isOpen(b))) return null;
    const key = `${kind} ${a.id} ${b.id}`;
    const found = this.known.get(key);
    if (found) return found;
    this.known.set(key, "pending");
    this.waiting.push(async () => {
      // Only what succeeded has a result: nobody is asked for one that cannot be there.
      const read = async (step: { id: string; state: string }): Promise<Side> => (kind === "result" && step.state !== "succeeded" ? { is: "none" } : readWhole(step.id, kind, PART, this.stop.signal));
      const [left, right] = await Promise.all([read(a), read(b)]);
      this.known.set(key, verdictOf(left, right));
      this.version += 1;
      for (const listener of this.listeners) listener();
    });
    this.next();
    return "pending";
  }

  private next(): void {
    while (this.running < AT_ONCE && !this.stop.signal.aborted) {
      const work = this.waiting.shift();
      if (!work) return;
      this.running += 1;
      void work().catch(() => {}).finally(() => {
        this.running -= 1;
        this.next();
      });
    }
  }

  close(): void {
    this.stop.abort();
    this.waiting.length = 0;
  }
}

export function useEquality(equality: Equality): number {
  useEffect(() => () => equality.close(), [equality]);
  return useSyncExternalStore(equality.subscribe, equality.now);
}
