// A node's room as squares: running, free, last known (hatched), not known (`?`). The sentence
// beside it says the same; the drawing is hidden from screen readers.
import { type Part, saidOf } from "./map";

const CLASS: Record<Part["kind"], string> = {
  running: "painted bg-text-2 border border-text-2",
  free: "border border-line",
  last: "painted hatched border border-line",
  unknown: "border border-dashed border-line text-text-3",
};

/** More than this many are a bar. */
const SQUARES_MAX = 32;

export function Squares({ parts, size = 10 }: { parts: Part[]; size?: number }) {
  const total = parts.reduce((sum, part) => sum + part.count, 0);
  if (total === 0) return <span aria-hidden style={{ height: size }} />;
  if (total > SQUARES_MAX) return <RoomBar parts={parts} />;
  return (
    <span aria-hidden className="flex flex-wrap gap-[2px]" title={saidOf(parts)}>
      {parts.flatMap((part) =>
        Array.from({ length: part.count }, (_, index) => (
          <span key={`${part.kind}${index}`} className={`inline-flex items-center justify-center rounded-[1px] text-[9px] leading-none ${CLASS[part.kind]}`} style={{ width: size, height: size }}>
            {part.kind === "unknown" && size >= 9 && "?"}
          </span>
        )),
      )}
    </span>
  );
}

/** The same as one bar, its parts in proportion; nothing that is there is thinner than 2 px. */
export function RoomBar({ parts, height = 10 }: { parts: Part[]; height?: number }) {
  return (
    <span aria-hidden className="flex w-full gap-px" style={{ height }} title={saidOf(parts)}>
      {parts.filter((part) => part.count > 0).map((part) => (
        <span key={part.kind} className={`min-w-[2px] overflow-hidden rounded-[1px] text-center text-[9px] leading-none ${CLASS[part.kind]}`} style={{ flexGrow: part.count, flexBasis: 0 }}>
          {part.kind === "unknown" && "?"}
        </span>
      ))}
    </span>
  );
}

/** What the squares mean, once for a page. */
export function Legend() {
  const kinds = [["running", "running"], ["free", "free"], ["last", "as last known"], ["unknown", "not known"]] as const;
  return (
    <span className="flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-text-3">
      {kinds.map(([kind, word]) => (
        <span key={kind} className="flex items-center gap-1">
          <Squares parts={[{ kind, count: 1 }]} /> {word}
        </span>
      ))}
    </span>
  );
}
