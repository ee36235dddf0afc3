// What the address says about how a run is looked at: which view, which step, which filters and
// folds, which part of the time. Defaults are left out; the chosen view is remembered by size.
import { useMemo, useSyncExternalStore } from "react";
import { setQuery, useQuery } from "@/router";
import { type View, viewOf } from "./axis";
import { type FoldState, readFold, writeFold } from "./fold-state";
import type { Filter } from "./folds";

export type ViewName = "tree" | "time" | "list";
export const VIEWS: readonly ViewName[] = ["tree", "time", "list"];
export type Size = "phone" | "small" | "middle" | "large";

const PHONE = "(max-width: 639px)";
const narrow = typeof matchMedia === "undefined" ? undefined : matchMedia(PHONE);
export function usePhone(): boolean {
  return useSyncExternalStore(
    (listener) => {
      narrow?.addEventListener("change", listener);
      return () => narrow?.removeEventListener("change", listener);
    },
    () => narrow?.matches ?? false,
  );
}

const DRAWN_MAX = 150;
const LIST_FROM = 5_000;

export function sizeOf(steps: number, drawn: number, phone: boolean): Size {
  if (phone) return "phone";
  if (steps > LIST_FROM) return "large";
  return drawn > DRAWN_MAX ? "middle" : "small";
}

export const DEFAULT_VIEW: Record<Size, ViewName> = { phone: "list", small: "tree", middle: "time", large: "list" };

const keyOf = (size: Size) => `muster.run.view.${size}`;

/** The view for a run of this size: the reader's last choice, else the default. */
export function viewFor(size: Size): ViewName {
  try {
    const kept = localStorage.getItem(keyOf(size));
    if (VIEWS.includes(kept as ViewName)) return kept as ViewName;
  } catch {
    // A browser that stores nothing has only defaults.
  }
  return DEFAULT_VIEW[size];
}

export function keepView(size: Size, view: ViewName): void {
  try {
    localStorage.setItem(keyOf(size), view);
  } catch {
    // Forgotten with the tab.
  }
}

/** `2s`, `500ms`, `1.5m`, `3` (seconds): milliseconds; `null` when it says nothing. */
export function readSlower(text: string): number | null {
  const found = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)?\s*$/.exec(text);
  if (!found) return null;
  const unit = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[found[2] ?? "s"] ?? 1000;
  return Number(found[1]) * unit;
}

export function useViewState() {
  const [view] = useQuery("view");
  const [step] = useQuery("step");
  const [tab] = useQuery("tab");
  const [only] = useQuery("only", "all");
  const [slower] = useQuery("slower");
  const [fold] = useQuery("fold");
  const [zoom] = useQuery("zoom");
  const [path] = useQuery("path");
  const [idle] = useQuery("idle");
  // Each by itself: what hangs on one of them is not made anew when a step is selected.
  const folds = useMemo(() => readFold(fold), [fold]);
  const zoomed = useMemo(() => viewOf(zoom), [zoom]);
  const opened = useMemo<ReadonlySet<number>>(() => new Set(idle.split("-").filter(Boolean).map(Number)), [idle]);
  return useMemo(() => ({
    view: VIEWS.includes(view as ViewName) ? (view as ViewName) : null,
    /** What the address calls a view and is none. */
    misread: view !== "" && !VIEWS.includes(view as ViewName) ? view : null,
    step: step || null,
    tab: tab || undefined,
    filter: { only, slower: readSlower(slower) } satisfies Filter,
    slowerText: slower,
    fold: folds,
    foldText: fold,
    zoom: zoomed,
    /** The critical path is drawn. */
    path: path === "on",
    /** Beginnings of idle stretches that the reader opened. */
    idle: opened,
  }), [view, step, tab, only, slower, fold, folds, zoomed, path, opened]);
}

export const setFold = (fold: FoldState) => setQuery({ fold: writeFold(fold) || null });
export const setStep = (id: string | null, tab?: string | null) => setQuery({ step: id, ...(tab !== undefined || id === null ? { tab: tab ?? null } : {}) });
export const setZoom = (zoom: View, write: (view: View) => string) => setQuery({ zoom: write(zoom) || null });
