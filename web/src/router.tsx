// Where the reader is: path and query of the address bar, as state. Everything that a view
// remembers is in the query, so that reload, Back and a pasted link show the same. Knows no page.
import { type AnchorHTMLAttributes, type ReactNode, useCallback, useSyncExternalStore } from "react";

export const BASE = "/ui";

/** A path that the plane gave, below `/ui`; one that is not is left as it is, none leads to the overview. */
export const below = (path: string | null | undefined) => (!path || path === BASE ? "/" : path.startsWith(`${BASE}/`) ? path.slice(BASE.length) : path);

const listeners = new Set<() => void>();
const tell = () => {
  for (const listener of listeners) listener();
};
if (typeof window !== "undefined") window.addEventListener("popstate", () => heldBack() || tell());

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** Path below `/ui`, always beginning with `/`. */
export function usePath(): string {
  return useSyncExternalStore(subscribe, currentPath);
}

export function currentPath(): string {
  const path = window.location.pathname;
  return path.startsWith(BASE) ? path.slice(BASE.length) || "/" : path;
}

const currentSearch = () => window.location.search;

/** The whole query. Prefer `useQuery` for one key. */
export function useSearch(): URLSearchParams {
  return new URLSearchParams(useSyncExternalStore(subscribe, currentSearch));
}

/** Asked before another page takes this one's place: `go` does it. One at a time. */
type Hold = (go: () => void) => void;
let hold: Hold | undefined;
/** Where the reader is while they are held. */
let heldAt = "";

/** Asks before the page is left, by a key, a link or Back. Answers how to let go. */
export function holdPage(ask: Hold): () => void {
  hold = ask;
  heldAt = window.location.pathname + window.location.search;
  return () => {
    if (hold === ask) hold = undefined;
  };
}

/** Back is over when one hears of it: the page is put back, and the way there is kept. */
function heldBack(): boolean {
  if (!hold || window.location.pathname === heldAt.split("?")[0]) return false;
  const wanted = window.location.pathname + window.location.search;
  window.history.pushState(null, "", heldAt);
  const ask = hold;
  ask(() => {
    if (hold === ask) hold = undefined;
    navigate(wanted.startsWith(BASE) ? wanted.slice(BASE.length) || "/" : wanted);
  });
  return true;
}

/** Goes to a page: pushes an entry, or replaces the present one. `to` is below `/ui`. */
export function navigate(to: string, { replace = false } = {}): void {
  const url = BASE + to;
  if (url === window.location.pathname + window.location.search) return;
  if (hold && url.split("?")[0] !== window.location.pathname) {
    const ask = hold;
    ask(() => {
      if (hold === ask) hold = undefined;
      navigate(to, { replace });
    });
    return;
  }
  if (replace) window.history.replaceState(null, "", url);
  else window.history.pushState(null, "", url);
  tell();
  if (!replace) window.scrollTo(0, 0);
}

/** Changes keys of the query in place; `null` and "" take a key out (defaults are left out). */
export function setQuery(changes: Record<string, string | null>): void {
  const query = new URLSearchParams(window.location.search);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(key);
    else query.set(key, value);
  }
  const text = query.toString();
  navigate(currentPath() + (text ? `?${text}` : ""), { replace: true });
}

/** One key of the query and its setter; the default is never written into the address. */
export function useQuery(key: string, fallback = ""): [string, (value: string | null) => void] {
  const value = useSyncExternalStore(
    subscribe,
    () => new URLSearchParams(window.location.search).get(key) ?? fallback,
  );
  const set = useCallback(
    (next: string | null) => setQuery({ [key]: next === fallback ? null : next }),
    [key, fallback],
  );
  return [value, set];
}

/** Matches `/runs/:run` against a path; the values are decoded. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/").filter(Boolean);
  const there = path.split("/").filter(Boolean);
  if (wanted.length !== there.length) return null;
  const values: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const segment = there[index] ?? "";
    if (part.startsWith(":")) {
      try {
        values[part.slice(1)] = decodeURIComponent(segment);
      } catch {
        return null;
      }
    } else if (part !== segment) return null;
  }
  return values;
}

/** A path with ids percent-encoded: `path("runs", id)`. */
export function path(...segments: string[]): string {
  return `/${segments.map(encodeURIComponent).join("/")}`;
}

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & { to: string; children: ReactNode };

/** A link below `/ui`. Opens in a new tab with the usual keys, as any link. */
export function Link({ to, onClick, ...rest }: LinkProps) {
  return (
    <a
      {...rest}
      href={BASE + to}
      onClick={(event) => {
        onClick?.(event);
        const plain =
          event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
        if (event.defaultPrevented || !plain) return;
        event.preventDefault();
        navigate(to);
      }}
    />
  );
}
