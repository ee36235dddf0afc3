// Keys: what each does where. A page registers its keys while it is shown; the innermost
// registration of a key wins; `?` lists them all. Never acts while somebody types in a field.
import { useEffect, useRef } from "react";
import { display } from "@/look/display";

export type Key = {
  /** `j`, `Enter`, `Escape`, `Ctrl+K`, `Shift+R`, or two in a row: `g r`. */
  key: string;
  does: string;
  run(event: KeyboardEvent): void;
  /** Also while typing in a field (Escape, Ctrl+Enter). */
  always?: boolean;
};

const layers: { current: Key[] }[] = [];
let first: { key: string; at: number } | undefined;

/** The name of what was pressed, as written in `Key.key`. */
function pressed(event: KeyboardEvent): string {
  const control = event.ctrlKey || event.metaKey ? "Ctrl+" : "";
  const { key } = event;
  const shift = event.shiftKey && (key.length > 1 || /[A-Z]/.test(key)) ? "Shift+" : "";
  return control + shift + (key.length === 1 && (shift || control) ? key.toUpperCase() : key);
}

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.closest("[data-keys=off]") !== null);

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const name = pressed(event);
  const letter = name.length === 1 || name.startsWith("Shift+") && name.length === 7;
  if (letter && !display().keys) return;
  const inField = typing(event.target);
  const second = first && performance.now() - first.at < 1200 ? `${first.key} ${name}` : undefined;
  first = undefined;
  for (const wanted of second ? [second, name] : [name]) {
    for (const layer of [...layers].reverse()) {
      const key = layer.current.find((each) => each.key === wanted);
      if (!key || (inField && !key.always)) continue;
      event.preventDefault();
      key.run(event);
      return;
    }
  }
  const begins = !inField && layers.some((layer) => layer.current.some((key) => key.key.startsWith(`${name} `)));
  if (begins) first = { key: name, at: performance.now() };
}

if (typeof window !== "undefined") window.addEventListener("keydown", onKeyDown);

/** Registers keys while the component is shown. */
export function useKeys(keys: Key[]): void {
  const layer = useRef(keys);
  layer.current = keys;
  useEffect(() => {
    layers.push(layer);
    return () => {
      layers.splice(layers.indexOf(layer), 1);
    };
  }, []);
}

/** Everything that can be pressed now, innermost first. */
export const keysNow = (): Key[] => [...layers].reverse().flatMap((layer) => layer.current);
