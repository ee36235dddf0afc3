// The form of a restart or a fork: what runs again, what is taken over, with which input; and what
// that would do, asked of the plane at every change. Writes into the wish, sends nothing.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Problem } from "@/api/problem";
import { bytes, count } from "@/look/format";
import { Plain } from "@/parts/plain";
import { CommandLine, ErrorPanel } from "@/parts/says";
import { wouldDo } from "../ask";
import { tokensOf } from "../json/tokens";
import { readPayload, textOf } from "../payload";
import type { RestartConsequence } from "../shapes";
import { type RestartWish, type Reuse, type Scope, bodyOf, commandOf } from "./wish";

/** A larger input is not edited in a page. */
const EDIT_BYTES_MAX = 1024 * 1024;

const REUSES: [Reuse, string][] = [
  ["succeeded-before", "what had succeeded before this call"],
  ["all-succeeded", "everything that succeeded"],
  ["none", "nothing: everything runs again"],
];

export type RestartFormProps = {
  id: string;
  /** The root of its run: only a root has an input to change in the scope of the run. */
  root: boolean;
  inputSize: number;
  /** Written as the reader chooses; read when the act runs. */
  wish: RestartWish;
  editing?: boolean;
};

export default function RestartForm({ id, root, inputSize, wish, editing }: RestartFormProps) {
  const [shown, setShown] = useState<RestartWish>({ ...wish });
  const set = (changes: Partial<RestartWish>) => {
    Object.assign(wish, changes);
    setShown({ ...wish });
  };
  const canEdit = root || shown.scope === "execution";
  const [edit, setEdit] = useState(editing === true);
  const stored = useQuery<string, Problem>({
    queryKey: ["payload", id, "input", "edit"],
    enabled: edit && inputSize <= EDIT_BYTES_MAX,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const part = await readPayload(id, "input", 0, EDIT_BYTES_MAX, signal);
      return part.is === "here" ? textOf(part.bytes, true).text : "{}";
    },
  });
  useEffect(() => {
    if (edit && stored.data !== undefined && wish.input === null) set({ input: stored.data });
  }, [edit, stored.data]);

  const asked = useLater(JSON.stringify(shown), 250);
  const would = useQuery<RestartConsequence, Problem>({
    queryKey: ["would restart", id, asked],
    queryFn: () => wouldDo<RestartConsequence>("/api/v1/executions/{id}/restart", { path: { id }, body: bodyOf(JSON.parse(asked) as RestartWish) }),
    staleTime: 5_000,
    placeholderData: (before) => before,
    retry: false,
  });
  const fault = shown.input === null ? undefined : tokensOf(shown.input).fault;
  const name = `restart-${id}`;
  const command = commandOf(id, shown);
  return (
    <div className="flex w-full flex-col gap-3" data-keys="off">
      <Choice legend="What runs again" name={`${name}-scope`} value={shown.scope}
        options={[["workflow", root ? "the whole run" : "the whole run, from its root"], ["execution", "this call alone"]]}
        set={(scope) => {
          set({ scope: scope as Scope, ...(scope === "workflow" && !root ? { input: null } : {}) });
          if (scope === "workflow" && !root) setEdit(false);
        }} />
      <Choice legend="Taken over" name={`${name}-reuse`} value={shown.reuse} options={REUSES} set={(reuse) => set({ reuse: reuse as Reuse })} />
      <label className="flex items-center gap-2">
        <input type="checkbox" checked={shown.fork} onChange={(event) => set({ fork: event.target.checked })} />
        Fork: beside the old run, also while that is open
      </label>
      <div className="flex flex-col gap-1">
        <label className="flex items-center gap-2">
          <input type="checkbox" checked={edit} disabled={!canEdit || inputSize > EDIT_BYTES_MAX}
            onChange={(event) => {
              setEdit(event.target.checked);
              if (!event.target.checked) set({ input: null });
            }} />
          With another input
          {!canEdit && <span className="text-text-3">only for this call alone, or from the root</span>}
          {inputSize > EDIT_BYTES_MAX && <span className="text-text-3">{bytes(inputSize)} is too much to edit here</span>}
        </label>
        {edit && stored.error && <ErrorPanel error={stored.error} what="the stored input" />}
        {edit && shown.input !== null && (
          <>
            <textarea aria-label="Input, JSON" className="field min-h-32 w-full font-mono text-xs" spellCheck={false}
              rows={Math.min(14, Math.max(4, shown.input.split("\n").length + 1))}
              value={shown.input} onChange={(event) => set({ input: event.target.value })} />
            {fault && <p className="text-wait">at character {count(fault.at + 1)}: {fault.says}</p>}
          </>
        )}
      </div>
      <label className="flex flex-col gap-1">
        <span className="text-text-2">Reason, kept with the run</span>
        <input className="field" value={shown.reason} maxLength={500} onChange={(event) => set({ reason: event.target.value })} />
      </label>
      <div aria-live="polite" className="border-t border-border pt-2">
        {would.error ? <ErrorPanel error={would.error} /> : would.data ? <Would would={would.data} /> : <p className="text-text-3">Asking what would run again</p>}
      </div>
      {command !== `muster restart ${id}` && <CommandLine command={command} />}
    </div>
  );
}

function Would({ would }: { would: RestartConsequence }) {
  const refused = would.refused ?? [];
  return (
    <div className="flex flex-col gap-1">
      <p><strong>reuses {count(would.reuses)}, runs {count(would.runs)}</strong> · <Plain text={would.text} /></p>
      {refused.map((reason) => <p key={reason} className="text-fail">Would be refused: <Plain text={reason} /></p>)}
      {(would.functions ?? []).length > 1 && (
        <ul className="max-h-32 overflow-auto">
          {would.functions.map((each) => (
            <li key={each.name} className="flex gap-3">
              <span className="min-w-0 flex-1 truncate font-mono text-xs"><Plain text={each.name} /></span>
              <span className="text-text-2">reuses {count(each.reuses)}</span>
              <span>runs {count(each.runs)}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Choice({ legend, name, value, options, set }: {
  legend: string; name: string; value: string; options: [string, string][]; set(value: string): void;
}) {
  return (
    <fieldset className="flex flex-wrap gap-x-4 gap-y-1">
      <legend className="mb-1 text-text-2">{legend}</legend>
      {options.map(([word, text]) => (
        <label key={word} className="flex items-center gap-1">
          <input type="radio" name={name} value={word} checked={value === word} onChange={() => set(word)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}

/** A value that follows another one when that has been still for a while. */
function useLater(value: string, ms: number): string {
  const [later, setLater] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return later;
}
