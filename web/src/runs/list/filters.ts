// The filters of the lists, with how many there are of each state where the plane says it.
import type { Filter } from "@/parts/filters";
import { STATES } from "./line";

const CATEGORIES = [
  "agent_error", "agent_timeout", "agent_unreachable", "agent_restart_orphaned", "node_unavailable", "outcome_unknown", "no_progress", "queue_timeout", "bad_response",
  "concurrency_limit", "llm_unavailable", "validation", "internal_error",
];
const ORIGINS = ["dev", "server", "ci"];

export function filtersOf(what: "runs" | "executions", counts: Record<string, number> | null, address: URLSearchParams): Filter[] {
  const others = Object.keys(counts ?? {}).filter((state) => !STATES.some((known) => known === state));
  // A category of a newer plane that stands in the address stays a choice.
  const category = address.get("category");
  const categories = category && !CATEGORIES.includes(category) ? [...CATEGORIES, ...category.split(",").filter((each) => !CATEGORIES.includes(each))] : CATEGORIES;
  return [
    { key: "q", name: what === "runs" ? "name or id" : "target or id", kind: "text", inline: true },
    { key: "state", kind: "choice", many: true, options: [...STATES, ...others].map((value) => ({ value, count: counts ? (counts[value] ?? 0) : undefined })) },
    { key: "agent", kind: "text", hint: "agent, or several with commas" },
    { key: "fn", name: "function", kind: "text" },
    { key: "category", kind: "choice", many: true, options: categories.map((value) => ({ value })) },
    { key: "reason", kind: "text", hint: "status reason" },
    { key: "label", kind: "text", hint: "key=value" },
    { key: "origin", kind: "choice", options: ORIGINS.map((value) => ({ value })) },
  ];
}
