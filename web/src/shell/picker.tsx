// A field and what it finds: a list in groups that arrows walk through and Enter opens. Used by the
// search and the palette; knows neither.
import { type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { Dialog } from "@/parts/layer";

export type Pick = { id: string; content: ReactNode; /** At the right: key and command. */ hint?: ReactNode; disabled?: string; run(event: { newTab: boolean }): void };
export type PickGroup = { name: string; picks: Pick[]; more?: ReactNode };

type Props = {
  label: string;
  placeholder: string;
  close(): void;
  text: string;
  setText(text: string): void;
  groups: PickGroup[];
  /** Under the list: what a reader should know; what is being asked. */
  note?: ReactNode;
  empty: ReactNode;
};

export function Picker(props: Props) {
  return (
    <Dialog close={props.close} label={props.label} className="picker">
      <PickerBody {...props} />
    </Dialog>
  );
}

/** The field and the list, without the layer that they are in. */
export function PickerBody({ label, placeholder, close, text, setText, groups, note, empty }: Props) {
  const list = useId();
  const box = useRef<HTMLDivElement>(null);
  const picks = useMemo(() => groups.flatMap((group) => group.picks), [groups]);
  const [chosen, setChosen] = useState<string>();
  const at = Math.max(0, picks.findIndex((pick) => pick.id === chosen));
  useEffect(() => {
    if (chosen !== undefined) box.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
    else if (box.current) box.current.scrollTop = 0;
  }, [at, picks, chosen]);
  const move = (to: number) => setChosen(picks[(to + picks.length) % picks.length]?.id);
  const run = (pick: Pick | undefined, newTab: boolean) => {
    if (!pick || pick.disabled) return;
    close();
    // After the dialog is gone: what opens next takes the focus.
    setTimeout(() => pick.run({ newTab }));
  };
  return (
    <>
      <input
        data-first className="picker-field" role="combobox" aria-expanded aria-controls={list} aria-label={label} autoComplete="off" spellCheck={false}
        aria-activedescendant={picks.length > 0 ? `${list}-${at}` : undefined} placeholder={placeholder} value={text}
        onChange={(event) => {
          setText(event.target.value);
          setChosen(undefined);
        }}
        onKeyDown={(event) => {
          const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: Math.min(at + 8, picks.length - 1), PageUp: Math.max(at - 8, 0) }[event.key];
          if (to !== undefined && picks.length > 0) {
            event.preventDefault();
            move(to);
          } else if (event.key === "Enter") {
            event.preventDefault();
            run(picks[at], event.ctrlKey || event.metaKey);
          }
        }}
      />
      <div ref={box} id={list} role="listbox" aria-label={label} className="picker-list">
        {groups.map((group) => group.picks.length > 0 && (
          <div key={group.name} role="group" aria-label={group.name}>
            <p aria-hidden className="picker-group">{group.name}</p>
            {group.picks.map((pick) => {
              const index = picks.indexOf(pick);
              return (
                <div
                  key={pick.id} id={`${list}-${index}`} role="option" aria-selected={index === at} aria-disabled={pick.disabled !== undefined || undefined} title={pick.disabled}
                  className="picker-line" onPointerMove={() => chosen !== pick.id && setChosen(pick.id)}
                  onClick={(event) => run(pick, event.ctrlKey || event.metaKey)}
                >
                  <span className="flex min-w-0 flex-1 items-center gap-2">{pick.content}</span>
                  {pick.hint && <span className="flex shrink-0 items-center gap-2 text-text-3">{pick.hint}</span>}
                </div>
              );
            })}
            {group.more && <p className="px-3 text-xs text-text-3">{group.more}</p>}
          </div>
        ))}
        {picks.length === 0 && <div className="p-3 text-text-2">{empty}</div>}
      </div>
      {note && <p className="picker-note">{note}</p>}
    </>
  );
}
