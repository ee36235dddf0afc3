// The acts on a run, in the head of its page.
import type { RunShown } from "./shapes";

export function RunActs(_: { run: RunShown; phone: boolean }) {
  return null;
}
