// Layers above the page: a popover at what opened it, and a dialog over everything. Both are the
// browser's own (top layer, Escape, inert page behind a dialog), so they need no library and write
// no styles. Focus goes in on opening and back to the opener on closing.
import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useRef } from "react";

type PopoverProps = {
  anchor: RefObject<HTMLElement | null>;
  close(): void;
  /** Its accessible name. */
  label: string;
  children: ReactNode;
  role?: "dialog" | "menu" | "listbox";
  className?: string;
};

const GAP = 4;
const EDGE = 8;

/** Where a layer goes: under the anchor, above it when there is no room, always inside the window. */
export function placed(
  anchor: { left: number; top: number; bottom: number },
  size: { width: number; height: number },
  view: { width: number; height: number },
): { left: number; top: number } {
  const below = anchor.bottom + GAP;
  const above = anchor.top - GAP - size.height;
  const top = below + size.height <= view.height - EDGE || above < EDGE ? below : above;
  return {
    left: Math.max(EDGE, Math.min(anchor.left, view.width - size.width - EDGE)),
    top: Math.max(EDGE, Math.min(top, view.height - size.height - EDGE)),
  };
}

/** Shown while it is in the tree. The first element with `data-first` gets the focus, else itself. */
export function Popover({ anchor, close, label, children, role = "dialog", className = "" }: PopoverProps) {
  const box = useRef<HTMLDivElement>(null);
  const closing = useRef(close);
  closing.current = close;
  useLayoutEffect(() => {
    const layer = box.current;
    if (!layer) return;
    const opener = document.activeElement as HTMLElement | null;
    layer.showPopover?.();
    const place = () => {
      const at = anchor.current?.getBoundingClientRect();
      if (!at) return;
      const { left, top } = placed(at, { width: layer.offsetWidth, height: layer.offsetHeight }, { width: Math.min(document.documentElement.clientWidth, document.body.getBoundingClientRect().right), height: innerHeight });
      layer.style.left = `${left}px`;
      layer.style.top = `${top}px`;
    };
    place();
    const watch = new ResizeObserver(place);
    watch.observe(layer);
    addEventListener("resize", place);
    addEventListener("scroll", place, true);
    (layer.querySelector<HTMLElement>("[data-first]") ?? layer).focus();
    const outside = (event: PointerEvent) => {
      const target = event.target as Node;
      if (!layer.contains(target) && !anchor.current?.contains(target)) closing.current();
    };
    addEventListener("pointerdown", outside, true);
    return () => {
      watch.disconnect();
      removeEventListener("resize", place);
      removeEventListener("scroll", place, true);
      removeEventListener("pointerdown", outside, true);
      const inside = layer.contains(document.activeElement) || document.activeElement === document.body;
      if (inside) (opener?.isConnected ? opener : anchor.current)?.focus();
    };
  }, [anchor]);
  return (
    <div
      ref={box}
      popover="manual"
      role={role}
      aria-label={label}
      tabIndex={-1}
      className={`layer fixed m-0 rounded-md border border-border bg-surface p-3 text-text ${className}`}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        close();
      }}
      // Keys of the page do not act while a layer is open over it.
      data-keys="off"
    >
      {children}
    </div>
  );
}

/** Modal: the page behind is inert. `data-first` gets the focus. */
export function Dialog({ close, label, children, className = "" }: { close(): void; label: string; children: ReactNode; className?: string }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = box.current;
    if (!dialog) return;
    const opener = document.activeElement as HTMLElement | null;
    dialog.showModal?.();
    dialog.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => {
      dialog.close?.();
      if (opener?.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      aria-label={label}
      className={`layer m-auto max-h-[85dvh] w-[min(560px,calc(100vw-32px))] overflow-auto rounded-md border border-border bg-surface p-4 text-text ${className}`}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) close();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") event.stopPropagation();
      }}
      data-keys="off"
    >
      {children}
    </dialog>
  );
}

/** The next of the elements that can be chosen, by arrows, Home and End. */
export function moveFocus(event: React.KeyboardEvent, selector = "[role=menuitem], [role=option], [role=menuitemcheckbox]"): void {
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>(selector)];
  const at = all.indexOf(document.activeElement as HTMLElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (next === undefined || all.length === 0) return;
  event.preventDefault();
  all[(next + all.length) % all.length]?.focus();
}
