// Finds a text in what the terminal shows and in what has scrolled away.
import type { ISearchOptions, SearchAddon } from "@xterm/addon-search";
import { useEffect, useState } from "react";
import { count } from "@/look/format";
import type { TerminalScreen } from "./screen";

const OPTIONS: ISearchOptions = {
  decorations: { matchBackground: "#5a4a10", matchOverviewRuler: "#e3b341", activeMatchBackground: "#8a6d10", activeMatchColorOverviewRuler: "#e3b341" },
};

export function Find({ view, close }: { view: TerminalScreen; close(): void }) {
  const [text, setText] = useState("");
  const [search, setSearch] = useState<SearchAddon>();
  const [found, setFound] = useState<{ resultIndex: number; resultCount: number }>();
  useEffect(() => {
    let loaded: SearchAddon | undefined;
    let gone = false;
    void view.finder().then((addon) => {
      loaded = addon;
      if (gone) return addon.dispose();
      addon.onDidChangeResults(setFound);
      setSearch(addon);
    });
    return () => {
      gone = true;
      loaded?.clearDecorations();
      loaded?.dispose();
    };
  }, [view]);
  const find = (back: boolean, wanted = text) => {
    if (wanted === "") search?.clearDecorations();
    else if (back) search?.findPrevious(wanted, OPTIONS);
    else search?.findNext(wanted, OPTIONS);
  };
  const says = text === "" ? "" : !found || found.resultCount === 0 ? "not here" : `${found.resultIndex < 0 ? "" : `${count(found.resultIndex + 1)} of `}${count(found.resultCount)}`;
  return (
    <form className="flex flex-wrap items-center gap-2" onSubmit={(event) => { event.preventDefault(); find(false); }}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.stopPropagation();
          close();
        } else if (event.key === "Enter" && event.shiftKey) {
          event.preventDefault();
          find(true);
        }
      }}>
      <input className="field w-56 font-mono" autoFocus type="search" aria-label="Find in the terminal" spellCheck={false} value={text}
        onChange={(event) => {
          setText(event.target.value);
          find(true, event.target.value);
        }} />
      <button type="button" className="button" onClick={() => find(true)}>Up</button>
      <button type="submit" className="button">Down</button>
      <span role="status" className="text-text-2">{says}</span>
      <button type="button" className="button" onClick={close}>Close</button>
    </form>
  );
}
