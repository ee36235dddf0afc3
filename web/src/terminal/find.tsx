// Finds a text in what the terminal shows and in what has scrolled away.
import { useEffect, useState } from "react";
import { count } from "@/look/format";
import type { TerminalScreen } from "./screen";

export function Find({ view, close }: { view: TerminalScreen; close(): void }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState<{ resultIndex: number; resultCount: number }>();
  useEffect(() => {
    const listening = view.onFound(setFound);
    return () => listening.dispose();
  }, [view]);
  const says = text === "" ? "" : !found || found.resultCount === 0 ? "not here" : `${found.resultIndex < 0 ? "" : `${count(found.resultIndex + 1)} of `}${count(found.resultCount)}`;
  return (
    <form className="flex flex-wrap items-center gap-2" onSubmit={(event) => { event.preventDefault(); view.find(text, false); }}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.stopPropagation();
          close();
        } else if (event.key === "Enter" && event.shiftKey) {
          event.preventDefault();
          view.find(text, true);
        }
      }}>
      <input className="field w-56 font-mono" autoFocus type="search" aria-label="Find in the terminal" spellCheck={false} value={text}
        onChange={(event) => {
          setText(event.target.value);
          if (event.target.value === "") view.endFind();
          else view.find(event.target.value, true);
        }} />
      <button type="button" className="button" onClick={() => view.find(text, true)}>Up</button>
      <button type="submit" className="button">Down</button>
      <span role="status" className="text-text-2">{says}</span>
      <button type="button" className="button" onClick={close}>Close</button>
    </form>
  );
}
