// The frame around every page: rail, head, banners, the live indicator. Knows no page's content.
import { Suspense } from "react";
import { Link, match, usePath } from "@/router";
import { useLiveState } from "@/live/stream";
import { CommandLine, EmptyState, Panel, Skeleton } from "@/parts/says";
import { Spoken, Toasts } from "@/parts/toasts";
import { Age } from "@/parts/values";
import { PAGES } from "./pages";

const PLACES = [
  ["/", "Overview"], ["/runs", "Runs"], ["/agents", "Agents"], ["/fleet", "Fleet"],
  ["/queues", "Queues"], ["/usage", "Usage"], ["/health", "Health"], ["/settings", "Settings"],
] as const;

export function Shell() {
  const path = usePath();
  const { live, lastFrameAt } = useLiveState();
  const found = PAGES.map(([pattern, Page]) => ({ Page, values: match(pattern, path) })).find((each) => each.values);
  return (
    <div className="flex min-h-screen">
      <nav aria-label="Places" className="w-[200px] shrink-0 border-r border-border p-3">
        {PLACES.map(([to, name]) => (
          <Link key={to} to={to} className="block rounded-sm px-2 py-1 hover:bg-hover" aria-current={path === to ? "page" : undefined}>{name}</Link>
        ))}
      </nav>
      <main className="page">
        <header className="mb-3 flex items-center gap-3">
          <div id="page-head" className="flex min-w-0 flex-1 items-center gap-3" />
          <span className="text-text-2">{live.state} <Age at={lastFrameAt || null} plain /></span>
        </header>
        <Panel key={path} what="page">
          <Suspense fallback={<Skeleton what="the page" />}>
            {found ? <found.Page {...found.values} /> : (
              <EmptyState>There is no page {path}. <CommandLine command="muster --help" /></EmptyState>
            )}
          </Suspense>
        </Panel>
      </main>
      <Toasts />
      <Spoken />
    </div>
  );
}
