// How this reader wants to see things: theme, density, clock, single-letter keys, motion. Kept in
// this browser; holds no secret and nothing of the plane.
import { useSyncExternalStore } from "react";

export type Display = {
  theme: "system" | "light" | "dark";
  density: "comfortable" | "compact";
  clock: "local" | "utc";
  /** Whether single letters act as keys. */
  keys: boolean;
  motion: "system" | "none";
};

const DEFAULTS: Display = { theme: "system", density: "comfortable", clock: "local", keys: true, motion: "system" };
const KEY = "muster.display";
const listeners = new Set<() => void>();
let current = read();

function read(): Display {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return { ...DEFAULTS, ...(kept && typeof kept === "object" ? kept : {}) };
  } catch {
    return DEFAULTS;
  }
}

/** Puts the settings onto the document; called before the first paint and on every change. */
export function applyDisplay(): void {
  const dark = current.theme === "dark" ||
    (current.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  const root = document.documentElement.dataset;
  root.theme = dark ? "dark" : "light";
  root.density = current.density;
  root.motion = current.motion;
}

export function setDisplay(changes: Partial<Display>): void {
  current = { ...current, ...changes };
  try {
    localStorage.setItem(KEY, JSON.stringify(current));
  } catch {
    // A browser that stores nothing forgets it with the tab.
  }
  applyDisplay();
  for (const listener of listeners) listener();
}

export function display(): Display {
  return current;
}

export function useDisplay(): Display {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}

if (typeof matchMedia !== "undefined") {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    applyDisplay();
    for (const listener of listeners) listener();
  });
}
