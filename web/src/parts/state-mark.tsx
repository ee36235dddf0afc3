// A state as shape and word. The shape is drawn, the word is always there (or its accessible
// name), the colour is only the third signal. Evidence and age come from whoever shows it.
import type { ReactNode } from "react";
import { type Shape, colourOf, lookOf } from "@/look/words";

const filled = { fill: "currentColor", stroke: "none" };
const SHAPES: Record<Shape, ReactNode> = {
  ring: <circle cx="7" cy="7" r="4.75" />,
  triangle: <path d="M3.5 2 12 7l-8.5 5z" {...filled} />,
  arrow: <path d="M11.5 7a4.5 4.5 0 1 1-1.6-3.4M10.2 1.2v2.9H7.3" />,
  half: <><circle cx="7" cy="7" r="4.75" /><path d="M7 2.25a4.75 4.75 0 0 0 0 9.5z" {...filled} /></>,
  bars: <path d="M4.5 2.5v9M9.5 2.5v9" strokeWidth="2.4" />,
  check: <path d="m2.5 7.5 3 3 6-7" strokeWidth="2" />,
  cross: <path d="m3 3 8 8m0-8-8 8" strokeWidth="2" />,
  slashed: <><circle cx="7" cy="7" r="4.75" /><path d="m3.7 10.3 6.6-6.6" /></>,
  clock: <><circle cx="7" cy="7" r="4.75" /><path d="M7 4v3l2 1.6" /></>,
  disc: <circle cx="7" cy="7" r="4.25" {...filled} />,
  "half-disc": <><circle cx="7" cy="7" r="4.75" /><path d="M7 2.25a4.75 4.75 0 0 1 0 9.5z" {...filled} /></>,
  hatched: <><rect x="2.25" y="2.25" width="9.5" height="9.5" /><path d="M2.5 8 8 2.5M4 11.5 11.5 4M8.5 11.7l3.2-3.2" strokeWidth="1" /></>,
  dotted: <circle cx="7" cy="7" r="4.75" strokeDasharray="1.6 2.13" />,
  waves: <path d="M1.8 5c1.7-2 3.5-2 5.2 0s3.5 2 5.2 0M1.8 9.5c1.7-2 3.5-2 5.2 0s3.5 2 5.2 0" />,
  warning: <><path d="M7 1.8 12.7 12H1.3z" strokeLinejoin="round" /><path d="M7 5.5v3M7 10v.6" /></>,
  reused: <path d="M2 7h7M6.5 4 9.5 7l-3 3M12 3v8" />,
  observed: <><circle cx="7" cy="7" r="4.75" /><circle cx="7" cy="7" r="1.7" {...filled} /></>,
};

/** Only the shape, 14 px. Give it a text beside it, or use `StateMark`. */
export function Glyph({ shape, colour, label }: { shape: Shape; colour?: string; label?: string }) {
  return (
    <svg
      className="mark inline-block shrink-0"
      width="14"
      height="14"
      viewBox="0 0 14 14"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      style={colour ? { color: colour } : undefined}
      role={label ? "img" : undefined}
      aria-label={label}
      aria-hidden={label ? undefined : true}
    >
      {SHAPES[shape]}
    </svg>
  );
}

type Props = {
  state: string | null | undefined;
  kind?: "worker";
  /** Only the shape; the word becomes its name. */
  compact?: boolean;
  /** What is known and how old it is: shown on hover, and read out. */
  evidence?: string;
  /** Appended to the word: `✕? failed`. We stopped knowing. */
  doubtful?: boolean;
};

export function StateMark({ state, kind, compact, evidence, doubtful }: Props) {
  const { word, shape, colour, known } = lookOf(state, kind);
  const shown = known ? word.replaceAll("_", " ") : `other(${word})`;
  const title = [shown + (doubtful ? "?" : ""), evidence].filter(Boolean).join(" · ");
  return (
    <span
      className="state-mark inline-flex items-center gap-1 whitespace-nowrap"
      style={{ color: colourOf(colour) }}
      title={title}
      data-state={word}
    >
      <Glyph shape={shape} label={compact ? title : undefined} />
      {(doubtful || !known) && <span aria-hidden>?</span>}
      {!compact && <span className="self-baseline">{shown}</span>}
    </span>
  );
}
