// What somebody has typed into the form of a call: kept for this tab alone, in memory. Nothing of
// an input is ever stored in the browser.
import { useCallback, useSyncExternalStore } from "react";
import type { Lane } from "./call-send";

export type Draft = { text: string; lane: Lane; priority: number; key: string; view: "form" | "json" };

/** A tab that lives long does not keep everything: the oldest goes. */
const DRAFTS_MAX = 30;
const drafts = new Map<string, Draft>();
const listeners = new Set<() => void>();
const fresh: Draft = { text: "{}", lane: "async", priority: 5, key: "", view: "form" };

export function useDraft(target: string): [Draft, (changes: Partial<Draft>) => void] {
  const draft = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => drafts.get(target) ?? fresh,
  );
  const change = useCallback(
    (changes: Partial<Draft>) => {
      const next = { ...(drafts.get(target) ?? fresh), ...changes };
      drafts.delete(target);
      const oldest = drafts.size >= DRAFTS_MAX ? drafts.keys().next().value : undefined;
      if (oldest !== undefined) drafts.delete(oldest);
      drafts.set(target, next);
      for (const listener of listeners) listener();
    },
    [target],
  );
  return [draft, change];
}
