// Duties in the order in which they need somebody: late and failed first, then by name. What is
// late is the plane's word.
import type { components } from "muster-openapi";

export type Duty = components["schemas"]["DutyShown"];

const need = (duty: Duty) => (duty.late ? 0 : duty.failed ? 1 : 2);

export const byNeed = (duties: readonly Duty[]): Duty[] =>
  [...duties].sort((a, b) => need(a) - need(b) || a.name.localeCompare(b.name));

/** The parts of the store, largest first, and their sum. */
export function partsOf(bytes: Record<string, number>): { parts: [name: string, bytes: number][]; total: number } {
  const parts = Object.entries(bytes).sort((a, b) => b[1] - a[1]);
  return { parts, total: parts.reduce((sum, [, size]) => sum + size, 0) };
}
