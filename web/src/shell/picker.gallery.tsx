// Search and palette in their states: nothing typed, many found, none, slow, failed.
import { useState } from "react";
import type { Gallery } from "@/gallery/gallery";
import { KeyHint } from "@/parts/key-hint";
import { StateMark } from "@/parts/state-mark";
import { Age } from "@/parts/values";
import { planeNow } from "@/live/clock";
import { type PickGroup, PickerBody } from "./picker";

const run = () => {};
const found: PickGroup[] = [
  { name: "Runs", picks: ["plan-trip", "nightly-report"].map((name, n) => ({ id: name, content: <><StateMark state={n === 0 ? "running" : "failed"} compact /><span className="truncate">{name}</span></>, hint: <Age at={planeNow() - 60_000 * (n + 1)} />, run })), more: "and more: say more of it" },
  { name: "Agents", picks: [{ id: "weather", content: <><StateMark state="active" compact />weather</>, hint: "3 functions", run }] },
];
const palette: PickGroup[] = [
  { name: "Do", picks: [{ id: "cancel", content: "Cancel run plan-trip", hint: <><code className="hidden truncate sm:inline">muster cancel run_…</code><KeyHint k="Shift+X" /></>, run }, { id: "hold", content: "Hold weather", disabled: "needs operate", hint: <span className="text-xs">needs operate</span>, run }] },
  { name: "Go to", picks: [{ id: "runs", content: "Runs", hint: <><code className="hidden truncate sm:inline">muster runs</code><KeyHint k="g r" /></>, run }] },
  { name: "Display", picks: [{ id: "dark", content: "Theme: dark", hint: "now", run }] },
];

function Shown({ text = "", groups = [], empty = "", note, label }: { text?: string; groups?: PickGroup[]; empty?: React.ReactNode; note?: React.ReactNode; label: string }) {
  const [typed, setTyped] = useState(text);
  return <div className="rounded-md border border-border bg-surface"><PickerBody label={label} placeholder="An id, a name, state:failed …" close={() => {}} text={typed} setText={setTyped} groups={groups} empty={empty} note={note} /></div>;
}

const gallery: Gallery = {
  title: "Search, Palette",
  states: [
    { name: "nothing typed", show: () => <Shown label="Search 1" empty="Type an id, a name, a function or a label." note="Payloads are not searched." /> },
    { name: "many", show: () => <Shown label="Search 2" text="tri" groups={found} note={<>understood: <code>state:failed</code></>} /> },
    { name: "none", show: () => <Shown label="Search 3" text="xyz" empty="Nothing is called that." note="Payloads are not searched." /> },
    { name: "slow", show: () => <Shown label="Search 4" text="tri" empty="asking the plane …" /> },
    { name: "failed", show: () => <Shown label="Search 5" text="tri" empty={<span className="text-fail">the plane did not answer</span>} /> },
    { name: "palette: acts with key and command, one that cannot be done", show: () => <Shown label="Palette" groups={palette} /> },
  ],
};
export default gallery;
