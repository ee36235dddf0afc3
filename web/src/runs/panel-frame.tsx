// The place of the execution panel: right of the rows, as wide as the reader made it; on a phone it
// is the whole page.
import { type ReactNode, useState } from "react";
import { createPortal } from "react-dom";

const LEAST = 420;
const MOST = 720;
const KEY = "muster.panel.width";

function kept(): number {
  try {
    const width = Number(localStorage.getItem(KEY));
    return width >= LEAST && width <= MOST ? width : 480;
  } catch {
    return 480;
  }
}

export function PanelFrame({ children, phone }: { children: ReactNode; phone: boolean }) {
  const [width, setWidth] = useState(kept);
  const change = (next: number) => {
    const fine = Math.min(MOST, Math.max(LEAST, Math.round(next)));
    setWidth(fine);
    try {
      localStorage.setItem(KEY, String(fine));
    } catch {
      // Forgotten with the tab.
    }
  };
  // Outside of the page's boxes: some of them would hold what is fixed. (`overflow-auto` is positioned: base.css.)
  if (phone) return createPortal(<div className="fixed inset-0 z-50 overflow-y-auto bg-surface" data-panel>{children}</div>, document.body);
  return (
    <>
      <div
        className="resizer" role="separator" aria-orientation="vertical" aria-label="Width of the panel" tabIndex={0}
        aria-valuenow={width} aria-valuemin={LEAST} aria-valuemax={MOST}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => { if (event.currentTarget.hasPointerCapture(event.pointerId)) change(width - event.movementX); }}
        onKeyDown={(event) => {
          const by = { ArrowLeft: 20, ArrowRight: -20, Home: MOST, End: -MOST }[event.key];
          if (by === undefined) return;
          event.preventDefault();
          change(width + by);
        }}
      />
      <div className="min-h-0 flex-none overflow-auto" style={{ width: `min(${width}px, 60%)` }} data-panel>{children}</div>
    </>
  );
}
