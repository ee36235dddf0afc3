// Sums of what agents reported, as text: never rounded up, and what was not reported is said. Pure.
import type { components } from "muster-openapi";
import { count } from "@/look/format";

type Schemas = components["schemas"];
export type Sums = Schemas["UsageSums"];
export type UsageRow = Schemas["UsageRow"];

/** An exact decimal for a cell: at least two places, at most four, cut and not rounded. */
export function money(amount: string): string {
  const found = /^(-?)(\d+)(?:\.(\d*))?$/.exec(amount);
  if (!found) return amount;
  const [, sign, whole = "0", parts = ""] = found;
  const kept = parts.slice(0, 4).replace(/0+$/, "").padEnd(2, "0");
  const lost = /[1-9]/.test(parts.slice(4));
  if (lost && whole === "0" && /^0+$/.test(kept)) return `${sign}<0.0001`;
  return `${sign}${count(BigInt(whole))}.${kept}${lost ? "…" : ""}`;
}

/** What the sums leave out, or undefined when they are whole. */
export function missing(sums: Sums | null | undefined): string | undefined {
  if (!sums) return "the plane does not say what was used";
  const parts = [
    sums.unreported > 0 && `${count(sums.unreported)} of ${count(sums.executions)} executions reported no usage`,
    sums.unreadable > 0 && `${count(sums.unreadable)} reported something that cannot be read`,
    sums.with_other_keys > 0 && `${count(sums.with_other_keys)} also reported keys that are not summed`,
  ].filter(Boolean);
  return parts.length > 0 ? parts.join("; ") : undefined;
}

/** Why a sum is not there. */
export const reasonOf = (sums: Sums | null | undefined): string => sums?.usage_unknown ?? (!sums ? "the plane does not say" : sums.executions === sums.unreported ? "no agent reported usage" : "no report names it");
