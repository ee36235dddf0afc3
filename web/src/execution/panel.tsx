// The whole story of one execution: why, input, output, attempts, logs, notes, events, raw. Shown
// at the right of a run, or as a page of its own on a phone. Knows nothing of the run's views.

export type ExecutionPanelProps = {
  id: string;
  /** The tab that is open (kept in the address by whoever shows the panel); absent means the best one. */
  tab?: string;
  setTab(tab: string): void;
  /** Closes the panel. */
  close?(): void;
};

export function ExecutionPanel({ id }: ExecutionPanelProps) {
  return <section aria-label={`Execution ${id}`}>{id}</section>;
}
