// One run: is it done, what holds it, where did it break, where did time go. Three views of the same
// rows, and the story of the selected step beside them. Everything the reader chose is in the address.
import "./run.css";
import { useCallback, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useGet } from "@/api/queries";
import { ExecutionPanel } from "@/execution/panel";
import { isOpen } from "@/execution/shapes";
import { useOfflineSince } from "@/live/stream";
import { useTitle } from "@/shell/crumbs";
import { useKeys } from "@/shell/keys";
import { AsOf, CommandLine, EmptyState, ErrorPanel, Panel, Skeleton } from "@/parts/says";
import { Glyph } from "@/parts/state-mark";
import { late } from "@/parts/late";
import { setQuery } from "@/router";
import { RunActs } from "./acts";
import { cancelsOf } from "./cancelled";
import { type Forest, countsOf } from "./forest";
import { GroupsView } from "./groups-view";
import { Crumbs, Summary } from "./head";
import { ListView } from "./list-view";
import { Patterned } from "./marks";
import { type RunModel, useRunModel, wayFrom } from "./model";
import { PanelFrame } from "./panel-frame";
import { type StepsSnapshot, useSteps } from "./steps-store";
import { TimeView } from "./time-view";
import { Toolbar } from "./toolbar";
import { type Size, type ViewName, keepView, setStep, sizeOf, usePhone, useViewState, viewFor } from "./view-state";

const TreeView = late(() => import("./tree-view"), <Skeleton what="the graph" />);
const RUN = "/api/v1/runs/{run}";
const COARSE = typeof matchMedia === "undefined" ? undefined : matchMedia("(pointer: coarse)");
const coarse = () => COARSE?.matches ?? false;
const onCoarse = (listener: () => void) => {
  COARSE?.addEventListener("change", listener);
  return () => COARSE?.removeEventListener("change", listener);
};

export default function RunPage({ run = "" }: { run?: string }) {
  const head = useGet(RUN, { path: { run } }, { keep: true });
  const shown = head.data;
  const steps = useSteps(run);
  const phone = usePhone();
  const offline = useOfflineSince();
  const state = steps.state ?? shown?.state ?? shown?.status ?? null;
  useTitle(shown?.name ?? shown?.root?.target ?? run, state);
  if (head.error?.notFound) {
    return (
      <>
        <Crumbs run={run} shown={undefined} acts={null} />
        <EmptyState>There is no run with this id. Either it never was, or retention has removed it: ended runs are kept for 30 days unless the configuration says otherwise. <CommandLine command="muster runs" /></EmptyState>
      </>
    );
  }
  return (
    <div className="fills flex min-h-0 flex-1 flex-col">
      <Crumbs run={run} shown={shown} acts={shown && <RunActs run={shown} phone={phone} />} phone={phone} />
      {shown && state ? (
        <Summary phone={phone} shown={shown} state={state} counts={steps.complete && !steps.tooMany ? countsOf(steps.forest) : new Map(Object.entries(shown.counts))} />
      ) : head.error ? <ErrorPanel error={head.error} what="the run" retry={() => void head.refetch()} /> : <Skeleton rows={1} what="the run" />}
      {offline !== undefined && shown && !steps.error && <AsOf at={offline} why="the plane does not answer" />}
      {steps.error && (steps.asOf !== null ? <AsOf at={steps.asOf} /> : <ErrorPanel error={steps.error} what="its steps" retry={steps.again} />)}
      {steps.tooMany ? <Panel what="the groups"><GroupsView run={run} total={steps.total ?? 0} phone={phone} /></Panel>
        : steps.asOf === null ? !steps.error && <Skeleton rows={10} what="its steps" />
          : steps.forest.steps.length === 0 ? <EmptyState>No step yet: the run was accepted and nothing of it was dispatched.</EmptyState>
            : <Patterned><Steps run={run} steps={steps} phone={phone} open={state !== null && isOpen(state)} /></Patterned>}
    </div>
  );
}

function Steps({ run, steps, phone, open }: { run: string; steps: StepsSnapshot; phone: boolean; open: boolean }) {
  const state = useViewState();
  const model = useRunModel(run, steps, state);
  const [tidied, setTidied] = useState(0);
  const size = useSize(run, steps, model, phone);
  const view: ViewName = state.view ?? viewFor(size);
  const setView = (next: ViewName) => {
    keepView(size, next);
    setQuery({ view: next });
  };
  const tidy = () => {
    if (view === "tree") setTidied((before) => before + 1);
    else model.anew();
  };
  // The panel has these keys while it is open.
  useKeys(state.step !== null ? [] : [
    { key: "[", does: "step before", run: () => goFrom(model, "previous") },
    { key: "]", does: "step after", run: () => goFrom(model, "next") },
    { key: "{", does: "calling step", run: () => goFrom(model, "parent") },
    { key: "}", does: "first called step", run: () => goFrom(model, "child") },
  ]);
  const rowHeight = useSyncExternalStore(onCoarse, coarse) ? 44 : 28;
  const grid = { ...model, label: "Steps", height: rowHeight };
  return (
    <>
      <Toolbar model={model} state={state} view={view} setView={setView} total={steps.total} phone={phone} tidy={tidy} open={open} />
      {!steps.complete && <p className="text-xs text-text-3" role="status">reading the steps: {steps.forest.steps.length} of {steps.total}</p>}
      {view !== "tree" && <Cancels forest={steps.forest} />}
      <div className="flex min-h-0 flex-1">
        {model.rows.length === 0 ? (
          <EmptyState>0 of {steps.total} steps match. <button type="button" className="text-accent" onClick={() => setQuery({ only: null, slower: null })}>Clear the filter</button></EmptyState>
        ) : (
          <Panel key={view} what={`the ${view}`}>
            {view === "time" && <TimeView {...grid} goesOn={open} zoom={state.zoom} idle={state.idle} critical={model.critical} showPath={state.path} />}
            {view === "list" && <ListView {...grid} phone={phone} />}
            {view === "tree" && <TreeView model={model} showPath={state.path} tidied={tidied} />}
          </Panel>
        )}
        {state.step !== null && <Selected id={state.step} tab={state.tab} model={model} phone={phone} />}
      </div>
    </>
  );
}

/** More cancels than these in one run are told by their rows alone. */
const CANCELS_SHOWN = 3;

/** What each cancel ended and what became of that code; opens where it began. The graph has it beside its cards. */
function Cancels({ forest }: { forest: Forest }) {
  const cancels = useMemo(() => cancelsOf(forest), [forest]);
  return cancels.slice(0, CANCELS_SHOWN).map((cancel) => (
    <p key={cancel.at} className="flex items-center gap-1 pb-1 text-text-2" data-cancel={cancel.members.length}>
      <Glyph shape="slashed" label="cancelled" />
      <button type="button" className="min-w-0 truncate text-left hover:underline" title={cancel.text} onClick={() => setStep(forest.steps[cancel.top]?.id ?? null)}>{cancel.text}</button>
    </p>
  ));
}

/** The size class by which the view is chosen: decided once for a run, so that growth changes nothing. */
function useSize(run: string, steps: StepsSnapshot, model: RunModel, phone: boolean): Size {
  const kept = useRef<{ run: string; size: Size } | null>(null);
  if (steps.complete && (kept.current?.run !== run || (kept.current.size === "phone") !== phone)) {
    kept.current = { run, size: sizeOf(steps.total ?? 0, model.rows.length, phone) };
  }
  return kept.current?.run === run ? kept.current.size : sizeOf(steps.total ?? 0, model.rows.length, phone);
}

function goFrom(model: RunModel, where: "previous" | "next" | "parent" | "child"): void {
  const next = wayFrom(model, where);
  if (next !== null) model.select(next);
}

function Selected({ id, tab, model, phone }: { id: string; tab: string | undefined; model: RunModel; phone: boolean }) {
  const close = useCallback(() => setStep(null), []);
  const go = (where: "previous" | "next" | "parent" | "child") => goFrom(model, where);
  return (
    <PanelFrame phone={phone}>
      <Panel what="the execution"><ExecutionPanel id={id} tab={tab} setTab={(next) => setQuery({ tab: next })} close={close} go={go} /></Panel>
    </PanelFrame>
  );
}
