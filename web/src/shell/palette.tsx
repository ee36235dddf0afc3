// The palette (Ctrl K): places, what was looked at, what can be done to what is on screen, and how
// things are displayed. Opens with what is known already; each line shows its key and its command.
import { useMemo, useState } from "react";
import { setDisplay, useDisplay } from "@/look/display";
import { KeyHint } from "@/parts/key-hint";
import { offersNow } from "@/parts/offers";
import { Plain } from "@/parts/plain";
import { commandOf } from "./commands";
import { keysNow } from "./keys";
import { best } from "./match";
import { type Pick, type PickGroup, Picker } from "./picker";
import { Icon, PLACES } from "./places";
import { recents } from "./recent";
import { goTo, nameOf, pickOf, useFound } from "./search";

type Entry = Pick & { group: string; text: string };

const hint = (key: string | undefined, command: string | undefined) => (
  <>
    {command && <code className="hidden truncate sm:inline">{command}</code>}
    {key && <KeyHint k={key} />}
  </>
);

/** Keys that do something on every page, and their commands; where a page has a meaning of its own for one, that. */
const EVERYWHERE: Record<string, string | undefined> = { "/": "muster search …", l: "muster tail", y: undefined, u: undefined, "?": "muster help" };

function everywhere(): Entry[] {
  const seen = new Set<string>();
  return keysNow().filter(({ key, does }) => key in EVERYWHERE && does !== "" && !seen.has(key) && seen.add(key)).map((each): Entry => ({
    group: "Do", id: `key ${each.key}`, text: each.does, content: `${each.does[0]?.toUpperCase()}${each.does.slice(1)}`, hint: hint(each.key, EVERYWHERE[each.key]), run: () => each.run(new KeyboardEvent("keydown", { key: each.key })),
  }));
}

export default function Palette({ close, only }: { close(): void; only?: "acts" }) {
  const [text, setText] = useState("");
  const display = useDisplay();
  const { data } = useFound(only ? "" : text.length > 1 ? text : "");
  const entries = useMemo<Entry[]>(() => {
    const acts = offersNow().map((offer): Entry => ({
      group: "Do", id: `act ${offer.name}`, text: offer.name, content: offer.name, disabled: offer.barred,
      hint: offer.barred ? <span className="text-xs">{offer.barred}</span> : hint(offer.hint, offer.command), run: offer.open,
    }));
    if (only) return acts;
    const set = (name: string, changes: Parameters<typeof setDisplay>[0], on: boolean): Entry => ({
      group: "Display", id: `display ${name}`, text: `display ${name}`, content: name, hint: on ? "now" : undefined, run: () => setDisplay(changes),
    });
    return [
      ...acts,
      ...recents().slice(0, 8).map((recent): Entry => ({ group: "Seen in this tab", id: `recent ${recent.path}`, text: recent.title, content: <span className="truncate"><Plain text={recent.title} /></span>, hint: hint(undefined, commandOf(recent.path)), run: goTo(recent.path) })),
      ...everywhere(),
      ...PLACES.map((place): Entry => ({
        group: "Go to", id: `go ${place.to}`, text: `go to ${place.name}`, content: <><Icon>{place.icon}</Icon>{place.name}</>, hint: hint(`g ${place.key}`, place.command), run: goTo(place.to),
      })),
      { group: "Go to", id: "go compare", text: "go to compare runs", content: "Compare two runs", hint: hint(undefined, "muster compare A B"), run: goTo("/compare") },
      set("Theme: as the system", { theme: "system" }, display.theme === "system"),
      set("Theme: light", { theme: "light" }, display.theme === "light"),
      set("Theme: dark", { theme: "dark" }, display.theme === "dark"),
      set("Rows: comfortable", { density: "comfortable" }, display.density === "comfortable"),
      set("Rows: compact", { density: "compact" }, display.density === "compact"),
      set("Clock: local", { clock: "local" }, display.clock === "local"),
      set("Clock: UTC", { clock: "utc" }, display.clock === "utc"),
      set(display.keys ? "Single-letter keys: off" : "Single-letter keys: on", { keys: !display.keys }, false),
      set(display.motion === "none" ? "Motion: as the system" : "Motion: none", { motion: display.motion === "none" ? "system" : "none" }, false),
    ];
  }, [display, only]);
  const groups = useMemo<PickGroup[]>(() => {
    const byName = new Map<string, Pick[]>();
    for (const entry of best(entries, (each) => each.text, text)) byName.set(entry.group, [...(byName.get(entry.group) ?? []), entry]);
    const own = [...byName].map(([name, picks]) => ({ name, picks }));
    const found = text.length > 1 && !only ? (data?.groups ?? []).map((group) => ({ name: nameOf(group.kind), picks: group.items.map((item) => pickOf(group.kind, item)) })) : [];
    return [...own, ...found];
  }, [entries, text, data, only]);
  return (
    <Picker
      label={only ? "Acts" : "Palette"} placeholder={only ? "What to do" : "Go somewhere, do something, find something"} close={close} text={text} setText={setText} groups={groups}
      empty={only ? "Nothing can be done to what is on this page." : "Nothing fits. The search (/) asks the plane for ids and names."}
    />
  );
}
