// All rows at once, twelve pixels wide, right of the rows: each bucket takes its worst state,
// failures keep three pixels, and the frame is what is in sight; it can be dragged. For eyes only:
// the list carries everything it shows.
import { type RefObject, useCallback, useEffect, useRef } from "react";
import { useDisplay } from "@/look/display";
import type { Row } from "./folds";
import { type Forest, type Step, troubleOf } from "./forest";

const WIDTH = 12;
const FAILURE_LEAST = 3;
const RANK = { none: 0, cancelled: 1, running: 2, waiting: 3, failed: 4 } as const;
const COLOURS = ["--ok", "--neutral", "--run", "--wait", "--fail"];

/** Free pixels on each side, by rank. */
const SIDE = [4, 4, 3, 2, 1];

const rankOf = (step: Step | undefined) => (step ? step.state === "cancelled" ? RANK.cancelled : RANK[troubleOf(step)] : 0);

/** The worst state of each pixel row. Pure. */
export function stripOf(rows: readonly Row[], forest: Forest, pixels: number): Int8Array {
  const found = new Int8Array(pixels).fill(-1);
  const each = pixels / Math.max(1, rows.length);
  for (const [at, row] of rows.entries()) {
    let rank = 0;
    if (row.kind === "step") rank = rankOf(forest.steps[row.index]);
    else if (row.kind === "group") for (const index of row.members) rank = Math.max(rank, rankOf(forest.steps[index]));
    const from = Math.floor(at * each);
    const to = Math.max(from + 1, Math.floor((at + 1) * each));
    const end = rank === RANK.failed ? Math.max(to, from + FAILURE_LEAST) : to;
    for (let y = from; y < Math.min(pixels, end); y++) if ((found[y] ?? -1) < rank) found[y] = rank;
  }
  return found;
}

type Props = { rows: readonly Row[]; forest: Forest; box: RefObject<HTMLDivElement | null>; height: number; head: number };

export function Strip({ rows, forest, box, height, head }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { theme } = useDisplay();
  const painted = useRef<ImageData | null>(null);

  const frame = useCallback(() => {
    const element = canvas.current;
    const list = box.current;
    const context = element?.getContext("2d");
    if (!element || !list || !context || !painted.current) return;
    context.putImageData(painted.current, 0, 0);
    const scale = element.height / Math.max(1, rows.length * height);
    const room = list.clientHeight - head;
    if (rows.length * height <= room) return;
    const ratio = element.width / WIDTH;
    context.strokeStyle = getComputedStyle(list).color;
    context.lineWidth = 1.5 * ratio;
    const tall = Math.max(8 * ratio, room * scale);
    context.strokeRect(ratio * 0.75, list.scrollTop * scale, element.width - ratio * 1.5, tall);
  }, [box, rows.length, height, head]);

  useEffect(() => {
    const element = canvas.current;
    const list = box.current;
    const context = element?.getContext("2d", { willReadFrequently: true });
    if (!element || !list || !context) return;
    const ratio = window.devicePixelRatio || 1;
    const paint = () => {
      const tall = Math.max(1, list.clientHeight - head);
      // Beside the scrollbar, where there is one.
      element.style.right = `${list.offsetWidth - list.clientWidth - list.clientLeft}px`;
      element.width = WIDTH * ratio;
      element.height = tall * ratio;
      element.style.height = `${tall}px`;
      const style = getComputedStyle(list);
      context.fillStyle = style.getPropertyValue("--sunken");
      context.fillRect(0, 0, element.width, element.height);
      const used = Math.min(element.height, Math.ceil(rows.length * height * ratio));
      const found = stripOf(rows, forest, used);
      for (let y = 0; y < used; y++) {
        const rank = found[y] ?? -1;
        if (rank < 0) continue;
        context.globalAlpha = rank === 0 ? 0.35 : 1;
        context.fillStyle = style.getPropertyValue(COLOURS[rank] ?? "--ok");
        // The worse, the wider: told apart without colour.
        const side = (SIDE[rank] ?? 3) * ratio;
        context.fillRect(side, y, element.width - 2 * side, 1);
      }
      context.globalAlpha = 1;
      painted.current = context.getImageData(0, 0, element.width, element.height);
      frame();
    };
    paint();
    const observer = new ResizeObserver(paint);
    observer.observe(list);
    list.addEventListener("scroll", frame, { passive: true });
    return () => {
      observer.disconnect();
      list.removeEventListener("scroll", frame);
    };
  }, [rows, forest, box, height, head, frame, theme]);

  const drag = (event: React.PointerEvent) => {
    const list = box.current;
    const element = canvas.current;
    if (!list || !element || (event.type === "pointermove" && !element.hasPointerCapture(event.pointerId))) return;
    if (event.type === "pointerdown") element.setPointerCapture(event.pointerId);
    const bounds = element.getBoundingClientRect();
    const share = (event.clientY - bounds.top) / bounds.height;
    list.scrollTop = share * rows.length * height - (list.clientHeight - head) / 2;
  };
  return <canvas ref={canvas} aria-hidden className="strip" style={{ top: head + 1 }} onPointerDown={drag} onPointerMove={drag} />;
}
