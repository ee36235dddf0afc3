// Slots of an agent as a bar with its numbers: held ones filled, free ones outlined. Without a cap
// there is no bar to fill, and none is drawn.
import { count } from "@/look/format";

/** More slots than this are drawn as a share, not one by one. */
const EACH_MAX = 12;

export function SlotBar({ used, cap, wide }: { used: number; cap: number | null; wide?: boolean }) {
  if (cap === null) return <span title="it may run any number at once">{count(used)}<span className="text-text-3">, no cap</span></span>;
  const over = Math.max(0, used - cap);
  const each = cap <= EACH_MAX;
  const cells = each ? cap : EACH_MAX;
  const filled = each ? Math.min(used, cap) : Math.min(cells, Math.ceil((used / Math.max(1, cap)) * cells));
  return (
    <span className="inline-flex items-center gap-2" title={`${count(used)} of ${count(cap)} slots held${over > 0 ? `, ${count(over)} over the cap` : ""}`}>
      <span aria-hidden className="inline-flex gap-px">
        {Array.from({ length: cells }, (_, index) => (
          <span key={index} className={`painted inline-block rounded-[1px] border ${wide ? "h-3 w-2.5" : "h-3 w-1.5"} ${index < filled ? "border-text-2 bg-text-2" : "border-line"}`}
            style={index < filled ? { background: "var(--text-2)" } : undefined} />
        ))}
      </span>
      <span>{count(used)}/{count(cap)}</span>
      {over > 0 && <span className="text-wait" title="callers that hold a slot may start one over the cap">⤒{count(over)}</span>}
    </span>
  );
}
