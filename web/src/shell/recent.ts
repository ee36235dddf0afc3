// What the reader looked at in this tab, newest first, for the palette. Ids and titles only.

export type Recent = { path: string; title: string };
const KEY = "muster.recent";
const MOST = 20;
/** Pages that the palette lists anyway. */
const PLACE = /^\/([a-z]*)$/;

function read(): Recent[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? (kept as Recent[]) : [];
  } catch {
    return [];
  }
}

export function remembered(list: readonly Recent[], seen: Recent): Recent[] {
  return [seen, ...list.filter((each) => each.path !== seen.path)].slice(0, MOST);
}

export function remember(path: string, title: string): void {
  if (PLACE.test(path) || path.startsWith("/login") || path.startsWith("/settings")) return;
  try {
    sessionStorage.setItem(KEY, JSON.stringify(remembered(read(), { path, title })));
  } catch {
    // A browser that stores nothing has no recent pages.
  }
}

export const recents = read;
