// A key as it is written beside what it does. Not shown where there is no keyboard, or where
// single letters are switched off.
import { useDisplay } from "@/look/display";

const SIGNS: Record<string, string> = {
  Shift: "⇧", Ctrl: "Ctrl ", Enter: "⏎", Escape: "Esc", ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", " ": "Space",
};

/** `Shift+R` as `⇧R`, `g r` as `G R`, `Ctrl+K` as `Ctrl K`. */
export function keyText(key: string): string {
  return key
    .split(" ")
    .filter((part, index, all) => part !== "" || all.length === 1 || index === 0)
    .map((chord) => chord.split("+").map((part) => SIGNS[part] ?? (part.length === 1 ? part.toUpperCase() : part)).join(""))
    .join(" ");
}

export function KeyHint({ k }: { k: string }) {
  const { keys } = useDisplay();
  const letter = !k.includes("Ctrl") && !/^(Enter|Escape|Arrow)/.test(k);
  if (letter && !keys) return null;
  return <kbd aria-hidden className="key-hint ml-1.5 text-xs text-text-3">{keyText(k)}</kbd>;
}
