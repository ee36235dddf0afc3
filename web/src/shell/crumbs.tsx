// What a page tells the shell: its title, its breadcrumbs, its acts. The title of the document
// begins with the state's glyph, so that a pinned tab tells.
import { type ReactNode, useEffect } from "react";
import { createPortal } from "react-dom";
import { lookOf } from "@/look/words";
import { ActGroup } from "@/parts/act-group";
import { currentPath } from "@/router";
import { focusTitle, useHead } from "./head";
import { remember } from "./recent";

const GLYPHS: Record<string, string> = {
  ring: "○", triangle: "▶", arrow: "↻", half: "◑", bars: "‖", check: "✓", cross: "✕", slashed: "⊘", clock: "◷",
  disc: "●", "half-disc": "◐", hatched: "?", dotted: "◌", waves: "≋", warning: "⚠", reused: "⇥", observed: "◉",
};

/** Sets the document's title. */
export function useTitle(title: string, state?: string | null): void {
  useEffect(() => {
    const glyph = state === undefined ? "" : `${GLYPHS[lookOf(state).shape]} `;
    document.title = `${glyph}${title} · Muster`;
    remember(currentPath(), title);
  }, [title, state]);
}

/** Puts breadcrumbs (one h1 with the object's name) and acts into the head of the page. */
export function PageHead({ crumbs, acts, beside }: { crumbs: ReactNode; acts?: ReactNode; /** Acts so few that they stand beside the title on a phone, too. */ beside?: boolean }) {
  const head = useHead();
  useEffect(() => {
    if (head) focusTitle();
  }, [head]);
  if (!head) return null;
  return createPortal(
    <>
      <div className={`crumbs flex min-w-0 flex-1 flex-wrap items-baseline gap-x-2 ${acts && !beside ? "max-sm:basis-full" : ""}`}>{crumbs}</div>
      {acts && <div className="flex flex-wrap items-center gap-2"><ActGroup>{acts}</ActGroup></div>}
    </>,
    head,
  );
}
