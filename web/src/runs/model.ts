// What the three views of a run share: the rows that the folds leave, the selected step, the row
// under the cursor, the critical path, and what happens when one is opened. State is in the address.
import { useCallback, useMemo, useRef, useState } from "react";
import { planeNow } from "@/live/clock";
import { type Critical, criticalPath } from "./critical";
import { AUTO, cycled, stepKey, toggled } from "./fold-state";
import { type Folded, type Memory, type Row, folded, remember, stays } from "./folds";
import { type Forest, childrenOf } from "./forest";
import type { StepsSnapshot } from "./steps-store";
import { type useViewState, setFold, setStep } from "./view-state";

type State = ReturnType<typeof useViewState>;

export type RunModel = Folded & {
  forest: Forest;
  critical: Critical;
  selected: number | null;
  cursor: string | null;
  setCursor(key: string): void;
  open(row: Row): void;
  toggle(row: Row, open?: boolean): void;
  now(): number;
  /** Decides anew what is folded and in what order: what `n` and Tidy do. */
  anew(): void;
  /** Counts how often that was done. */
  generation: number;
  follow: boolean;
  setFollow(on: boolean): void;
  stopFollowing(): void;
  select(index: number | null): void;
};

const PAGE = 50;

export function useRunModel(run: string, steps: StepsSnapshot, state: State): RunModel {
  const { forest } = steps;
  const [generation, setGeneration] = useState(0);
  const [cursor, setCursor] = useState<string | null>(null);
  const [follow, setFollow] = useState(false);
  const byId = useMemo(() => new Map(forest.steps.map((step) => [step.id, step.index])), [forest.shape, forest.steps.length]); // eslint-disable-line
  const selected = state.step === null ? null : (byId.get(state.step) ?? null);

  // The moment for which the rows are made: it moves with what the plane said, not with the clock.
  const now = useMemo(() => planeNow(), [forest]); // eslint-disable-line
  const critical = useMemo(() => criticalPath(forest, now), [forest, now]);
  const { only, slower } = state.filter;
  const { mode, base } = state.fold;
  const memory = useMemo(() => remember(), [run, only, slower, mode, base, steps.complete, generation]); // eslint-disable-line
  const result = useFolded(forest, state.fold, only, slower, selected, critical.steps, now, memory);

  const live = useRef({ forest, fold: state.fold, step: state.step });
  live.current = { forest, fold: state.fold, step: state.step };
  const toggle = useCallback((row: Row, open?: boolean) => {
    const { fold } = live.current;
    if (row.kind === "more") setFold({ ...fold, more: new Map([...fold.more].filter(([key]) => key !== row.group)).set(row.group, row.shown + PAGE) });
    else if (row.open !== null) setFold(toggled(fold, row.key, open ?? !row.open));
  }, []);
  const open = useCallback((row: Row) => {
    if (row.kind === "step") {
      const id = live.current.forest.steps[row.index]?.id ?? null;
      setStep(id);
    } else toggle(row);
  }, [toggle]);
  const select = useCallback((index: number | null) => {
    const step = index === null ? undefined : live.current.forest.steps[index];
    if (index !== null) setCursor(stepKey(index));
    setStep(step?.id ?? null);
  }, []);
  const stopFollowing = useCallback(() => setFollow(false), []);
  const anew = useCallback(() => setGeneration((before) => before + 1), []);
  return {
    ...result, forest, critical, selected, cursor: cursor ?? (selected === null ? null : stepKey(selected)), setCursor, open, toggle, now: planeNow, anew, generation, follow, setFollow, stopFollowing, select,
  };
}

/** The rows, made anew where they change: to select a step that has a row moves none, in however long a run. */
function useFolded(...inputs: [forest: Forest, fold: State["fold"], only: string, slower: number | null, selected: number | null, critical: ReadonlySet<number>, now: number, memory: Memory]): Folded {
  const [forest, fold, only, slower, selected, critical, now, memory] = inputs;
  const kept = useRef<{ inputs: typeof inputs; result: Folded } | null>(null);
  const before = kept.current;
  const alike = before?.inputs.every((input, at) => at === SELECTED || input === inputs[at]);
  const same = before && alike && (before.inputs[SELECTED] === selected || (before.inputs[SELECTED] === null && stays(before.result.rows, selected)));
  if (!same) kept.current = { inputs, result: folded({ forest, fold, filter: { only, slower }, selected, critical, now }, memory) };
  return (kept.current as { result: Folded }).result;
}

/** Which of its inputs the selected step is. */
const SELECTED = 4;

/** The step that keys act on: the selected one, else the marked one, else the first. */
export function chosenOf({ selected, cursor, rows, forest }: Pick<RunModel, "selected" | "cursor" | "rows" | "forest">): number | null {
  if (selected !== null) return selected;
  const row = rows.find((each) => each.key === cursor);
  return row?.kind === "step" ? row.index : (forest.roots[0] ?? null);
}

/** Where the keys `[ ] { }` go; where no step is selected or marked yet, to the first. */
export function wayFrom(model: Pick<RunModel, "selected" | "cursor" | "rows" | "forest">, where: "previous" | "next" | "parent" | "child"): number | null {
  const from = chosenOf(model);
  if (from === null || (model.selected === null && model.cursor === null)) return from;
  return neighbour(model.forest, model.forest.roots, from, where);
}

/** Where the keys `[ ] { }` go from a step; `null`: nowhere. */
export function neighbour(forest: Forest, roots: readonly number[], index: number, where: "previous" | "next" | "parent" | "child"): number | null {
  const step = forest.steps[index];
  if (!step) return null;
  if (where === "parent") return step.parent >= 0 && forest.steps[step.parent] ? step.parent : null;
  if (where === "child") return childrenOf(forest, index)[0] ?? null;
  const siblings = roots.includes(index) ? roots : childrenOf(forest, step.parent);
  const at = siblings.indexOf(index) + (where === "next" ? 1 : -1);
  return siblings[at] ?? null;
}

/** The folds one level less or more: from what is open now. Beyond the deepest level there is no more. */
export function levelled(fold: State["fold"], rows: readonly Row[], by: 1 | -1): State["fold"] {
  const deepest = rows.reduce((max, row) => Math.max(max, row.depth), 0);
  const level = typeof fold.base === "number" ? Math.min(fold.base, deepest) : deepest;
  return { ...AUTO, mode: fold.mode, base: Math.max(0, level + by) };
}

export { cycled };
