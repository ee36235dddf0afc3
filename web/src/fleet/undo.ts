// What takes a changed wish back: only what ends nothing. Pure.
import type { NodeVerb } from "./calls";

/** The act that makes `before` the wish again. A drain ends workers: it is no undo of anything. */
export function undoOf(before: string): NodeVerb | undefined {
  return before === "active" ? "activate" : before === "cordoned" ? "cordon" : undefined;
}
