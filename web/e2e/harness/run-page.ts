// The page of a run as tests use it: opening it in a view, its rows, cards and bars, what it says
// it shows, and what the plane knows of the same steps.
import type { Locator, Page } from "playwright-core";
import type { components } from "muster-openapi";
import type { Plane } from "./plane";
import { until } from "./waiting";

export type StepColumns = components["schemas"]["StepColumns"];
export type View = "tree" | "time" | "list";
export const KEY_OF: Record<View, string> = { tree: "1", time: "2", list: "3" };

/** One step as the plane tells it, out of the columns. */
export type ToldStep = { id: string; parent: number; name: string; state: string; reason: string | null; category: string | null; attempts: number; flags: number; why: string | null; kinds: string[]; started: number | null; ended: number | null };

export async function stepsOf(plane: Plane, run: string): Promise<ToldStep[]> {
  const steps: ToldStep[] = [];
  let after = "";
  do {
    const told = await plane.ask<StepColumns>(`/api/v1/runs/${run}/steps?view=columns&limit=2000${after && `&after=${after}`}`);
    const { columns } = told;
    for (const [at, id] of columns.id.entries()) {
      steps.push({
        id, parent: columns.parent[at] ?? -1, name: told.names[columns.name[at] ?? -1] ?? "?", state: columns.state[at] ?? "?", reason: columns.reason[at] ?? null,
        category: columns.category[at] ?? null, attempts: columns.attempts[at] ?? 0, flags: columns.flags[at] ?? 0, why: columns.why[at] ?? null,
        kinds: (columns.segments[at] ?? []).map(([kind]) => kind), started: columns.started[at] ?? null, ended: columns.ended[at] ?? null,
      });
    }
    after = told.next ?? "";
  } while (after);
  return steps;
}

/** Waits until a step of the run is so, as the plane tells it. */
export const stepOf = (plane: Plane, run: string, what: string, is: (step: ToldStep) => boolean, within = 30_000): Promise<ToldStep> =>
  until(`a step of ${run}: ${what}`, async () => (await stepsOf(plane, run)).find(is), within);

export const row = (page: Page, id: string): Locator => page.locator(`[role=row][data-step="${id}"]`);
export const card = (page: Page, id: string): Locator => page.locator(`.react-flow__node [data-step="${id}"]`);
export const grid = (page: Page): Locator => page.getByRole("treegrid", { name: "Steps" });
export const panel = (page: Page): Locator => page.locator("[data-panel]");
export const rows = (page: Page): Locator => grid(page).locator("[role=rowgroup] > [role=row]");

/** "2,000 steps, 61 rows, 1,939 folded", as numbers. */
export async function stated(page: Page): Promise<{ steps: number; rows: number; folded: number; groups: number }> {
  return JSON.parse((await page.locator("[data-counts]").getAttribute("data-counts")) ?? "{}") as never;
}

/** Opens a run and waits until its steps are drawn. `query`: the state of the view. */
export async function openRun(page: Page, run: string, query = ""): Promise<void> {
  await page.goto(`/ui/runs/${run}${query && `?${query}`}`);
  await page.locator("[data-counts]").waitFor();
}

/** Switches the view by its key. */
export async function look(page: Page, view: View): Promise<void> {
  await page.keyboard.press(KEY_OF[view]);
  await page.getByRole("tab", { name: new RegExp(`^${view}`, "i"), selected: true }).waitFor();
  if (view === "tree") await page.locator(".react-flow__node").first().waitFor();
  else await rows(page).first().waitFor();
}

/** What the reader sees of an element, as one line. */
export const textOf = async (at: Locator): Promise<string> => (await at.innerText()).replace(/\s+/g, " ").trim();
