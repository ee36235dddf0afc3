// The frame around every page: rail, banners, head, the live indicator, the layers that keys open.
// Knows no page's content.
import { type ComponentType, useEffect, useRef, useState } from "react";
import { queries, useGet } from "@/api/queries";
import { useSession } from "@/api/session";
import { keepFresh } from "@/live/cache";
import { useLive } from "@/live/stream";
import { EmptyState, Panel } from "@/parts/says";
import { announce } from "@/parts/say";
import { Spoken, Toasts } from "@/parts/toasts";
import { Link, match, navigate, usePath } from "@/router";
import { Banners } from "./banners";
import { PageHead, useTitle } from "./crumbs";
import { pageChanged, setHead } from "./head";
import { LiveIndicator } from "./indicator";
import { useKeys } from "./keys";
import { PAGES } from "./pages";
import { PLACES } from "./places";
import { Rail } from "./rail";

type Layer = "search" | "palette" | "acts" | "keys";
type LayerView = ComponentType<{ close(): void; only?: "acts" }>;
const LAYERS: Record<Layer, () => Promise<{ default: LayerView }>> = {
  search: () => import("./search"), palette: () => import("./palette"), acts: () => import("./palette"), keys: () => import("./overlay"),
};
/** Loaded once the page has settled, and kept: a key then opens them in the same frame. */
const loaded = new Map<Layer, LayerView>();
const loadLayers = () => {
  for (const [layer, load] of Object.entries(LAYERS) as [Layer, () => Promise<{ default: LayerView }>][]) {
    void load().then((view) => loaded.set(layer, view.default), () => {});
  }
};
const SETTLED_MS = 600;

keepFresh(queries);

export function Shell() {
  const path = usePath();
  const [layer, show] = useState<Layer>();
  const setLayer = (next: Layer | undefined) => {
    if (next === undefined || loaded.has(next)) show(next);
    else void LAYERS[next]().then((view) => {
      loaded.set(next, view.default);
      show(next);
    });
  };
  const [settled, setSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => {
      setSettled(true);
      loadLayers();
    }, SETTLED_MS);
    return () => clearTimeout(timer);
  }, []);
  const bare = path === "/login";
  useLive(bare ? [] : ["summary"]);
  const { data: overview } = useGet("/api/v1/overview", {}, { enabled: !bare && (settled || path === "/"), staleTime: 60_000 });
  useSignIn(path, settled);

  const before = useRef(path);
  if (before.current !== path) {
    before.current = path;
    pageChanged();
  }
  useKeys([
    { key: "/", does: "search", run: () => setLayer("search") },
    { key: "Ctrl+K", does: "palette: go, do, find", run: () => setLayer("palette"), always: true },
    { key: ".", does: "what can be done here", run: () => setLayer("acts") },
    { key: "?", does: "keys", run: () => setLayer("keys") },
    { key: "y", does: "copy a link to this view", run: copyLink },
    { key: "u", does: "ask again for what failed", run: () => void queries.refetchQueries({ type: "active", predicate: (query) => query.state.status === "error" || query.state.fetchFailureCount > 0 }) },
    ...PLACES.map((place) => ({ key: `g ${place.key}`, does: `go to ${place.name}`, run: () => navigate(place.to) })),
  ]);

  const found = PAGES.map(([pattern, Page]) => ({ Page, values: match(pattern, path) })).find((each) => each.values);
  const Open = layer && loaded.get(layer);
  const page = (
    <Panel key={path} what="this page">
      {found ? <found.Page {...found.values} /> : <Nowhere path={path} />}
    </Panel>
  );
  return (
    <div className="shell" data-bare={bare || undefined}>
      <a href="#page" className="skip-link" onClick={(event) => {
        event.preventDefault();
        document.getElementById("page")?.focus();
      }}>Skip to the page</a>
      {!bare && <Rail overview={overview} settled={settled} />}
      <div className="shell-right">
        {!bare && <Banners overview={overview} />}
        <main id="page" tabIndex={-1} className="page">
          {!bare && (
            <header className="page-top">
              <div ref={setHead} className="flex min-w-0 flex-1 flex-wrap items-center gap-x-4 gap-y-2 max-sm:gap-x-1" />
              <span className="flex items-center gap-1">
                <button type="button" className="icon-button" title="Search (/)" aria-label="Search" onClick={() => setLayer("search")}>
                  <svg width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.5" aria-hidden><circle cx="7" cy="7" r="4.5" /><path d="m10.5 10.5 4 4" /></svg>
                </button>
                <button type="button" className="icon-button hidden sm:inline-flex" title="Keys (?)" aria-label="Keys" onClick={() => setLayer("keys")}>?</button>
                <LiveIndicator />
              </span>
            </header>
          )}
          {page}
        </main>
      </div>
      {Open && <Open close={() => setLayer(undefined)} only={layer === "acts" ? "acts" : undefined} />}
      <Toasts />
      <Spoken />
    </div>
  );
}

function copyLink() {
  void navigator.clipboard?.writeText(location.href).then(() => announce("Link copied."));
}

/** Beyond loopback nothing can be read without a key: to the login page, and back afterwards. */
function useSignIn(path: string, settled: boolean): void {
  const session = useSession(settled && path !== "/login");
  useEffect(() => {
    if (session?.by === "nobody" && path !== "/login") {
      navigate(`/login?next=${encodeURIComponent(path + location.search)}`, { replace: true });
    }
  }, [session, path]);
}

function Nowhere({ path }: { path: string }) {
  useTitle("no such page");
  return (
    <>
      <PageHead crumbs={<h1 className="text-lg">No such page</h1>} />
      <EmptyState>
        There is no page <code>{path}</code>. <Link to="/" className="text-accent underline">Overview</Link>, or <kbd>/</kbd> to search for an id.
      </EmptyState>
    </>
  );
}
