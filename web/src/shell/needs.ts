// What needs somebody, by the place that shows it. The plane says it; this only sorts it.
import type { Need, Overview } from "@/api/shapes";

/** Which place shows which kind; a kind of a newer plane counts in the overview only. */
const PLACE_OF: Record<string, string> = {
  approval: "/runs", agent: "/agents", node: "/fleet", drift: "/fleet", doubt: "/fleet", alarm: "/health", hold: "/queues",
  duty: "/health", dead_letters: "/health", quarantine: "/health", disk: "/health",
};

/** How many need somebody in a place, and whether there may be more than the plane listed. */
export function countOf(overview: Overview | undefined, to: string): { count: number; atLeast: boolean } {
  if (!overview) return { count: 0, atLeast: false };
  if (to === "/") return { count: overview.needs_total, atLeast: false };
  const count = overview.needs.filter((need) => PLACE_OF[need.kind] === to).length;
  return { count, atLeast: count > 0 && overview.needs_total > overview.needs.length };
}

/** What stands above every page, most serious first. */
const BANNERS = ["hold", "doubt", "disk"];
/** What stands first on the overview: what would be a banner elsewhere, then the plane's own order. */
export const seriousFirst = (needs: readonly Need[]): Need[] => {
  const rank = (need: Need) => BANNERS.indexOf(need.kind) + 1 || 99;
  return [...needs].sort((a, b) => rank(a) - rank(b));
};

export const bannersOf = (overview: Overview | undefined): Need[] =>
  BANNERS.flatMap((kind) => overview?.needs.filter((need) => need.kind === kind) ?? []);
