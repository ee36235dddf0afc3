// Rows of one height in a box that scrolls: only those in sight are in the document. For payloads,
// logs and differences, where rows are plain; lists of things are `VirtualTable`.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEventHandler, type ReactNode, type Ref, useImperativeHandle, useRef } from "react";

export type WindowHandle = { show(row: number): void; toEnd(): void; atEnd(): boolean; focus(): void };

export type WindowProps = {
  label: string;
  rows: number;
  /** Height of a row in pixels. */
  height?: number;
  row(index: number): ReactNode;
  className?: string;
  role?: string;
  rowRole?: string;
  /** The row that keys act on, for screen readers. */
  active?: string;
  onKeyDown?: KeyboardEventHandler<HTMLDivElement>;
  onScroll?(): void;
  handle?: Ref<WindowHandle>;
};

export function Window({ label, rows, height = 20, row, className = "", role, rowRole, active, onKeyDown, onScroll, handle }: WindowProps) {
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 12,
  });
  useImperativeHandle(handle, () => ({
    show: (index) => virtual.scrollToIndex(index, { align: "auto" }),
    toEnd: () => {
      const element = box.current;
      if (element) element.scrollTop = element.scrollHeight;
    },
    atEnd: () => {
      const element = box.current;
      return !element || element.scrollHeight - element.scrollTop - element.clientHeight < height * 2;
    },
    focus: () => box.current?.focus({ preventScroll: true }),
  }), [virtual, height]);
  return (
    <div ref={box} className={`overflow-auto ${className}`} role={role ?? "group"} aria-label={label} tabIndex={0}
      aria-activedescendant={active} onKeyDown={onKeyDown} onScroll={onScroll}>
      <div className="relative min-w-max" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => (
          <div key={item.key} className="absolute top-0 left-0 min-w-full" role={rowRole}
            style={{ height, transform: `translateY(${item.start}px)` }}>
            {row(item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
