// Above the rows: which view, how they are folded and filtered, and how many there are of what.
import { useEffect, useState } from "react";
import { count } from "@/look/format";
import { KeyHint } from "@/parts/key-hint";
import { Misread } from "@/parts/misread";
import { setQuery } from "@/router";
import { useKeys } from "@/shell/keys";
import { AUTO, type FoldMode } from "./fold-state";
import { type RunModel, cycled, levelled } from "./model";
import { type ViewName, readSlower, setFold, type useViewState } from "./view-state";

const VIEW_NAMES: [ViewName, string][] = [["tree", "Tree"], ["time", "Time"], ["list", "List"]];
const ONLY: [string, string][] = [
  ["all", "all"], ["open", "open"], ["trouble", "failed or timed out"], ["failed", "failed"], ["waiting", "waiting"], ["absorbed", "waited for a restart"],
  ["running", "running"], ["queued", "queued"], ["paused", "paused"], ["succeeded", "succeeded"], ["cancelled", "cancelled"], ["timeout", "timeout"], ["reused", "reused"],
];

type Props = {
  model: RunModel;
  state: ReturnType<typeof useViewState>;
  view: ViewName;
  setView(view: ViewName): void;
  total: number | null;
  phone: boolean;
  /** Lays the graph out again; the other views fold anew. */
  tidy(): void;
  open: boolean;
};

export function Toolbar({ model, state, view, setView, total, phone, tidy, open }: Props) {
  const { fold } = state;
  useKeys([
    { key: "1", does: "tree", run: () => setView("tree") },
    { key: "2", does: "time", run: () => setView("time") },
    { key: "3", does: "list", run: () => setView("list") },
    { key: "f", does: "fold: auto, none, groups only", run: () => setFold(cycled(fold)) },
    { key: "(", does: "one level less", run: () => setFold(levelled(fold, model.rows, -1)) },
    { key: ")", does: "one level more", run: () => setFold(levelled(fold, model.rows, 1)) },
    { key: "e", does: "open all", run: () => setFold({ ...AUTO, mode: fold.mode, base: "open" }) },
    { key: "Shift+E", does: "close all", run: () => setFold({ ...AUTO, mode: fold.mode, base: "closed" }) },
    { key: "h", does: "critical path", run: () => setQuery({ path: state.path ? null : "on" }) },
    { key: "n", does: "fold and order anew", run: model.anew },
    { key: "Shift+T", does: "tidy", run: tidy },
    ...(open ? [{ key: "Shift+G", does: "follow the newest", run: () => model.setFollow(!model.follow) }] : []),
  ]);
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 py-1.5">
      <div role="tablist" aria-label="View" className="flex">
        {VIEW_NAMES.map(([name, text], at) => (
          <button key={name} type="button" role="tab" aria-selected={view === name} className="button -ml-px rounded-none first:ml-0 first:rounded-l-sm last:rounded-r-sm aria-selected:bg-selected aria-selected:font-semibold" onClick={() => setView(name)}>
            {text}<KeyHint k={String(at + 1)} />
          </button>
        ))}
      </div>
      {!phone && (
        <label className="inline-flex items-center gap-1.5 text-text-2">
          fold<KeyHint k="f" />
          <select className="field w-24" value={fold.mode} onChange={(event) => setFold({ ...AUTO, mode: event.target.value as FoldMode })}>
            <option value="auto">auto</option><option value="none">none</option><option value="groups">groups only</option>
          </select>
        </label>
      )}
      <label className="inline-flex items-center gap-1.5 text-text-2">
        <span className="max-sm:hidden">only</span>
        <select className="field w-36 max-sm:w-32" aria-label="Only steps that are" value={state.filter.only} onChange={(event) => setQuery({ only: event.target.value === "all" ? null : event.target.value })}>
          {ONLY.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
          {!ONLY.some(([value]) => value === state.filter.only) && <option value={state.filter.only}>{state.filter.only}</option>}
        </select>
      </label>
      {(!phone || state.slowerText !== "") && <Slower text={state.slowerText} />}
      {!phone && (
        <button type="button" className="button aria-pressed:bg-selected" aria-pressed={state.path} title="the chain of steps that decided how long the run took" onClick={() => setQuery({ path: state.path ? null : "on" })}>
          path{open && state.path && " so far"}<KeyHint k="h" />
        </button>
      )}
      {!phone && <button type="button" className="button" title={view === "tree" ? "lay the graph out again" : "fold and order the rows anew"} onClick={tidy}>Tidy<KeyHint k="Shift+T" /></button>}
      {open && !phone && (
        <button type="button" className="button aria-pressed:bg-selected" aria-pressed={model.follow} title="keep the newest row in sight; any scrolling turns it off" onClick={() => model.setFollow(!model.follow)}>follow<KeyHint k="Shift+G" /></button>
      )}
      {state.misread !== null && <Misread of="view" value={state.misread} shown={`the ${view}`} />}
      <Sentence model={model} total={total} filtered={state.filter.only !== "all" || state.filter.slower !== null} />
    </div>
  );
}

/** "2,000 steps, 61 rows, 1,939 folded". */
function Sentence({ model, total, filtered }: { model: RunModel; total: number | null; filtered: boolean }) {
  const steps = total ?? model.forest.steps.length;
  const parts = [`${count(steps)} ${steps === 1 ? "step" : "steps"}`];
  if (filtered) parts.push(`${count(model.matching)} match`);
  parts.push(`${count(model.rows.length)} ${model.rows.length === 1 ? "row" : "rows"}${model.groups > 0 ? ` (${count(model.groups)} ${model.groups === 1 ? "group" : "groups"})` : ""}`);
  parts.push(`${count(model.folded)} folded`);
  return (
    <span className="text-text-2" data-counts={JSON.stringify({ steps: total, rows: model.rows.length, folded: model.folded, groups: model.groups })}>
      {parts.join(", ")}
      {filtered && <button type="button" className="ml-2 text-accent hover:underline" onClick={() => setQuery({ only: null, slower: null })}>Clear</button>}
    </span>
  );
}

function Slower({ text }: { text: string }) {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  const wrong = typed.trim() !== "" && readSlower(typed) === null;
  const take = () => {
    if (!wrong) setQuery({ slower: typed.trim() || null });
  };
  return (
    <label className="inline-flex items-center gap-1.5 text-text-2">
      slower
      <input
        className="field w-16" placeholder="—" value={typed} aria-invalid={wrong} title={wrong ? "a duration: 500ms, 2s, 1.5m" : "only steps that took longer: 500ms, 2s, 1.5m"}
        onChange={(event) => setTyped(event.target.value)} onBlur={take}
        onKeyDown={(event) => { if (event.key === "Enter") take(); }}
      />
      {wrong && <span className="text-xs text-fail">like 500ms or 2s</span>}
    </label>
  );
}
