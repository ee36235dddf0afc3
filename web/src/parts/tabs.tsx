// Tabs moved through by arrows. Which one is open is the address's business, not this file's.
import { type ReactNode, useId } from "react";

export type Tab = { id: string; name: string; hint?: string; count?: ReactNode };

export type TabsProps = { label: string; tabs: Tab[]; open: string; set(tab: string): void; children: ReactNode };

export function Tabs({ label, tabs, open, set, children }: TabsProps) {
  const base = useId();
  const at = tabs.findIndex((tab) => tab.id === open);
  const go = (to: number) => {
    const tab = tabs[(to + tabs.length) % tabs.length];
    if (!tab) return;
    set(tab.id);
    document.getElementById(`${base}-${tab.id}`)?.focus();
  };
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div role="tablist" aria-label={label} className="flex overflow-x-auto border-b border-border px-1"
        onKeyDown={(event) => {
          const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
          if (to === undefined) return;
          event.preventDefault();
          go(to);
        }}>
        {tabs.map((tab) => (
          <button key={tab.id} id={`${base}-${tab.id}`} type="button" role="tab" aria-selected={tab.id === open} aria-controls={`${base}-panel`}
            tabIndex={tab.id === open ? 0 : -1} onClick={() => set(tab.id)} title={tab.hint ? `${tab.name} · ${tab.hint}` : tab.name}
            className={`-mb-px flex min-h-8 shrink-0 items-center gap-1 border-b-2 px-2 ${tab.id === open ? "border-accent text-text" : "border-transparent text-text-2 hover:bg-hover"}`}>
            {tab.name}
            {tab.count !== undefined && <span className="text-xs text-text-3">{tab.count}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${open}`} className="flex min-h-0 flex-1 flex-col overflow-auto" tabIndex={-1}>
        {children}
      </div>
    </div>
  );
}
