// What a part shows in the gallery: put a `*.gallery.tsx` beside it whose default is one of these.
// Keep the data in it made up on the spot and clearly so; nothing of it is asked from the plane.
import type { ReactNode } from "react";

export type Gallery = {
  /** The name of the component, as in the code. */
  title: string;
  /** Every state it can be in. */
  states: { name: string; show: () => ReactNode; /** Needs the whole width. */ wide?: boolean }[];
};
