// Filters of a list, kept in the address: each is a button that opens its choices, or a field. The
// plane filters; this only says what is asked for. On a phone they are in a sheet.
import { type ReactNode, useEffect, useRef, useState } from "react";
import { count } from "@/look/format";
import { setQuery, useSearch } from "@/router";
import { useKeys } from "@/shell/keys";
import { KeyHint } from "./key-hint";
import { Dialog, Popover, moveFocus } from "./layer";

export type Option = { value: string; text?: ReactNode; count?: number | null };
export type Filter = {
  /** Its key in the address. */
  key: string;
  /** What it is called; the key when left out. */
  name?: string;
} & (
  | { kind: "choice"; options: readonly Option[]; /** Several at once, joined by commas. */ many?: boolean }
  | { kind: "text"; hint?: string; suggestions?: readonly string[]; /** Wide field in the bar itself. */ inline?: boolean }
);

type BarProps = {
  filters: readonly Filter[];
  /** More controls beside them: the time range, a toggle. */
  children?: ReactNode;
  /** `42 of 1,204 match`. */
  matching?: { shown: number | null | undefined; of: number | null | undefined };
  /** The key that goes to the first inline field. */
  focusKey?: string;
};

const namesOf = (filters: readonly Filter[]) => filters.map((filter) => filter.key);
/** Takes all filters out of the address. */
export const clearFilters = (filters: readonly Filter[]) => setQuery(Object.fromEntries(namesOf(filters).map((key) => [key, null])));
/** Values of a filter that takes several. */
export const chosen = (value: string | null) => new Set((value ?? "").split(",").filter(Boolean));

/** Adds or takes away one value; the order of the choices, so that one state has one address. */
export function toggled(value: string | null, option: string, order: readonly string[], many: boolean): string | null {
  const now = chosen(value);
  if (!many) return now.has(option) ? null : option;
  if (!now.delete(option)) now.add(option);
  const known = order.filter((each) => now.has(each));
  return [...known, ...[...now].filter((each) => !order.includes(each)).sort()].join(",") || null;
}

export function FilterBar({ filters, children, matching, focusKey }: BarProps) {
  const search = useSearch();
  const [sheet, setSheet] = useState(false);
  const set = filters.filter((filter) => search.get(filter.key));
  const bar = useRef<HTMLDivElement>(null);
  useKeys(focusKey ? [{ key: focusKey, does: "filter", run: () => bar.current?.querySelector<HTMLInputElement>("input")?.focus() }] : []);
  const all = filters.map((filter) => <One key={filter.key} filter={filter} value={search.get(filter.key)} />);
  return (
    <div ref={bar} className="flex flex-wrap items-center gap-2 pb-2" role="search" aria-label="Filters">
      <div className="hidden flex-wrap items-center gap-2 sm:flex">{all}</div>
      <button type="button" className="button sm:hidden" onClick={() => setSheet(true)}>Filter{set.length > 0 && ` · ${set.length}`}</button>
      {children}
      {set.length > 0 && <button type="button" className="px-1 text-accent hover:underline" onClick={() => clearFilters(filters)}>Clear</button>}
      {set.length > 0 && matching && matching.shown !== null && matching.shown !== undefined && (
        <span className="text-text-2">{count(matching.shown)}{matching.of !== null && matching.of !== undefined && ` of ${count(matching.of)}`} match</span>
      )}
      {sheet && (
        <Dialog close={() => setSheet(false)} label="Filters">
          <h2 className="mb-3 text-lg">Filters</h2>
          <div className="flex flex-col items-start gap-3">{all}</div>
          <div className="mt-4 flex gap-2">
            <button type="button" className="button" data-first onClick={() => setSheet(false)}>Show</button>
            <button type="button" className="button" onClick={() => clearFilters(filters)}>Clear all</button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

function One({ filter, value }: { filter: Filter; value: string | null }) {
  if (filter.kind === "text" && filter.inline) return <TextFilter filter={filter} value={value} />;
  return <Chooser filter={filter} value={value} />;
}

function Chooser({ filter, value }: { filter: Filter; value: string | null }) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const name = filter.name ?? filter.key;
  const shown = filter.kind === "choice" ? [...chosen(value)].join(", ").replaceAll("_", " ") : value;
  return (
    <>
      <button ref={button} type="button" className="button max-w-[260px]" data-set={value ? true : undefined} aria-haspopup="dialog" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className={value ? "text-text-2" : ""}>{name}</span>
        {value && <span className="ml-1 truncate font-semibold">{shown}</span>}
        <span aria-hidden className="ml-1 text-text-3">▾</span>
      </button>
      {open && (
        <Popover anchor={button} close={() => setOpen(false)} label={name} className="min-w-[200px]">
          {filter.kind === "text" ? <TextFilter filter={filter} value={value} done={() => setOpen(false)} /> : <Choices filter={filter} value={value} done={() => setOpen(false)} />}
        </Popover>
      )}
    </>
  );
}

function Choices({ filter, value, done }: { filter: Filter & { kind: "choice" }; value: string | null; done(): void }) {
  const now = chosen(value);
  const order = filter.options.map((option) => option.value);
  return (
    <div role="group" className="-m-2 flex max-h-[60vh] flex-col overflow-auto" onKeyDown={(event) => moveFocus(event, "button")}>
      {filter.options.length === 0 && <p className="p-2 text-text-2">Nothing to choose from yet.</p>}
      {filter.options.map((option, index) => (
        <button
          key={option.value} type="button" role={filter.many ? "checkbox" : "radio"} aria-checked={now.has(option.value)} data-first={index === 0 || undefined}
          className="flex min-h-7 items-center gap-2 rounded-sm px-2 text-left hover:bg-hover"
          onClick={() => {
            setQuery({ [filter.key]: toggled(value, option.value, order, filter.many ?? false) });
            if (!filter.many) done();
          }}
        >
          <span aria-hidden className="w-3 text-accent">{now.has(option.value) ? "✓" : ""}</span>
          <span className="flex-1">{option.text ?? option.value.replaceAll("_", " ")}</span>
          {option.count !== undefined && <span className="text-text-2">{option.count === null ? "—" : count(option.count)}</span>}
        </button>
      ))}
    </div>
  );
}

const TYPING_MS = 200;

function TextFilter({ filter, value, done }: { filter: Filter & { kind: "text" }; value: string | null; done?(): void }) {
  const [typed, setTyped] = useState(value ?? "");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // The address changed from elsewhere (Back, Clear): the field follows, but not under the hands.
    if (document.activeElement !== field.current) setTyped(value ?? "");
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const put = (next: string) => setQuery({ [filter.key]: next.trim() || null });
  const list = filter.suggestions && filter.suggestions.length > 0 ? `suggest-${filter.key}` : undefined;
  return (
    <label className="flex items-center gap-2">
      <span className="visually-hidden">{filter.name ?? filter.key}</span>
      <input
        ref={field} className="field w-[200px]" type="search" spellCheck={false} autoComplete="off" placeholder={filter.hint ?? filter.name ?? filter.key}
        list={list} value={typed} data-first
        onChange={(event) => {
          const next = event.target.value;
          setTyped(next);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => put(next), TYPING_MS);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") {
            clearTimeout(timer.current);
            put(typed);
            done?.();
          } else if (event.key === "Escape" && !done) {
            event.stopPropagation();
            event.currentTarget.blur();
          }
        }}
      />
      {list && <datalist id={list}>{filter.suggestions?.map((each) => <option key={each} value={each} />)}</datalist>}
    </label>
  );
}

/** A toggle that stands in the address. */
export function Toggle({ on, set, k, children }: { on: boolean; set(on: boolean): void; k?: string; children: ReactNode }) {
  useKeys(k ? [{ key: k, does: typeof children === "string" ? children : "toggle", run: () => set(!on) }] : []);
  return (
    <button type="button" className="button" aria-pressed={on} onClick={() => set(!on)}>{children}{k && <KeyHint k={k} />}</button>
  );
}
