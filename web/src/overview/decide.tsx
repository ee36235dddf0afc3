// A person's decision in place: the execution is asked for when somebody begins to decide, then its
// acts (approve, request changes, refuse) stand where the button was.
import { useState } from "react";
import { useGet } from "@/api/queries";
import { executionActs } from "@/execution/acts";
import { ActButton } from "@/parts/act";

const DECISIONS = new Set(["approve", "request_changes", "reject"]);

export function Decide({ id }: { id: string }) {
  const [open, setOpen] = useState(false);
  const { data, error, isPending } = useGet("/api/v1/executions/{id}", { path: { id } }, { enabled: open });
  if (!open) return <button type="button" className="button button-compact" onClick={() => setOpen(true)}>Decide</button>;
  if (error) return <span className="text-fail">{error.message}</span>;
  if (isPending) return <span className="text-text-3">asking …</span>;
  const acts = executionActs(data as Parameters<typeof executionActs>[0]).filter((act) => DECISIONS.has(act.name));
  if (acts.length === 0) return <span className="text-text-2">It does not wait any more.</span>;
  return <span className="inline-flex flex-wrap gap-1">{acts.map((act) => <ActButton key={act.name} compact act={{ ...act, hint: undefined }} />)}</span>;
}
