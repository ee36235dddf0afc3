// A line above the page about the plane itself: what is the matter, since when, what to do.
import type { ReactNode } from "react";
import { Glyph } from "./state-mark";
import type { Shape } from "@/look/words";

export type BannerTone = "wait" | "fail" | "neutral";

const SHAPES: Record<BannerTone, Shape> = { wait: "warning", fail: "cross", neutral: "bars" };

export function Banner({ tone, shape, children, act }: { tone: BannerTone; shape?: Shape; children: ReactNode; act?: ReactNode }) {
  return (
    <div role="alert" className="banner flex min-h-9 flex-wrap items-center gap-x-3 gap-y-1 border-b border-border px-4 py-1" data-tone={tone} style={{ background: `var(--tint-${tone})` }}>
      <Glyph shape={shape ?? SHAPES[tone]} colour={`var(--${tone})`} />
      <span className="min-w-0 flex-1">{children}</span>
      {act}
    </div>
  );
}
