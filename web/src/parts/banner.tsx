// A line above the page about the plane itself: what is the matter, since when, what to do.
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { Glyph } from "./state-mark";
import type { Shape } from "@/look/words";

export type BannerTone = "wait" | "fail" | "neutral";

const SHAPES: Record<BannerTone, Shape> = { wait: "warning", fail: "cross", neutral: "bars" };

/** On a phone a long one is cut after two lines, and opened there. */
export function Banner({ tone, shape, children, act }: { tone: BannerTone; shape?: Shape; children: ReactNode; act?: ReactNode }) {
  const text = useRef<HTMLSpanElement>(null);
  const [cut, setCut] = useState(false);
  const [whole, setWhole] = useState(false);
  useLayoutEffect(() => {
    const element = text.current;
    if (!element || typeof ResizeObserver === "undefined") return;
    const watch = new ResizeObserver(() => setCut(element.scrollHeight > element.clientHeight + 1));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return (
    <div role="alert" className="banner flex min-h-9 items-center gap-x-3 border-b border-border px-4 py-1" data-tone={tone} style={{ background: `var(--tint-${tone})` }}>
      <Glyph shape={shape ?? SHAPES[tone]} colour={`var(--${tone})`} />
      <span ref={text} className="banner-text min-w-0 flex-1" data-whole={whole || undefined}>{children}</span>
      {(cut || whole) && <button type="button" className="target text-accent hover:underline" aria-expanded={whole} onClick={() => setWhole(!whole)}>{whole ? "less" : "more"}</button>}
      {act}
    </div>
  );
}
