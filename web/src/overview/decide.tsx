// A person's decision in place: the execution is asked for when somebody begins to decide, then its
// acts (approve, request changes, refuse) stand where the button was.
import { useRef, useState } from "react";
import { useGet } from "@/api/queries";
import { executionActs } from "@/execution/acts";
import { ActButton } from "@/parts/act";
import { useKeptFocus } from "@/parts/kept-focus";

const DECISIONS = new Set(["approve", "request_changes", "reject"]);

export function Decide({ id }: { id: string }) {
  const [open, setOpen] = useState(false);
  const { data, error, isPending } = useGet("/api/v1/executions/{id}", { path: { id } }, { enabled: open });
  const box = useRef<HTMLSpanElement>(null);
  const kept = useKeptFocus(box);
  const acts = data ? executionActs(data as Parameters<typeof executionActs>[0]).filter((act) => DECISIONS.has(act.name)) : [];
  return (
    <span ref={box} className="inline-flex flex-wrap gap-1" {...kept}>
      {!open ? <button type="button" className="button button-compact" onClick={() => setOpen(true)}>Decide</button>
        : error ? <span className="text-fail">{error.message}</span>
          : isPending ? <span className="text-text-3" data-kept tabIndex={-1}>asking …</span>
            : acts.length === 0 ? <span className="text-text-2" data-kept tabIndex={-1}>It does not wait any more.</span>
              : acts.map((act) => <ActButton key={act.name} compact act={{ ...act, hint: undefined }} />)}
    </span>
  );
}
