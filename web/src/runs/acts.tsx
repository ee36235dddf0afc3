// The acts on a run, in the head of its page: buttons where there is room, one menu on a phone.
import { useState } from "react";
import { runActs } from "@/execution/acts";
import { ActButton } from "@/parts/act";
import type { RunShown } from "./columns";

export function RunActs({ run, phone }: { run: RunShown; phone: boolean }) {
  const [open, setOpen] = useState(false);
  const acts = runActs(run);
  const buttons = acts.map((act) => <ActButton key={act.name} act={act} />);
  if (!phone) return <>{buttons}</>;
  return (
    <>
      <button type="button" className="icon-button" aria-expanded={open} aria-label="What can be done" onClick={() => setOpen(!open)}>⋯</button>
      {open && <div className="flex flex-wrap gap-2">{buttons}</div>}
    </>
  );
}
