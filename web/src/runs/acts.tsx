// The acts on a run, in the head of its page: buttons where there is room, one menu on a phone.
import { useRef, useState } from "react";
import { runActs } from "@/execution/acts";
import { ActButton } from "@/parts/act";
import { ActGroup } from "@/parts/act-group";
import { Popover } from "@/parts/layer";
import type { RunShown } from "./columns";

export function RunActs({ run, phone }: { run: RunShown; phone: boolean }) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const acts = runActs(run);
  const buttons = acts.map((act) => <ActButton key={act.name} act={act} />);
  if (!phone) return <>{buttons}</>;
  return (
    <>
      <button ref={button} type="button" className="icon-button" aria-haspopup="dialog" aria-expanded={open} aria-label="What can be done" onClick={() => setOpen(!open)}>⋯</button>
      {open && (
        <Popover anchor={button} close={() => setOpen(false)} label="What can be done">
          <div className="flex flex-wrap gap-2"><ActGroup>{buttons}</ActGroup></div>
        </Popover>
      )}
    </>
  );
}
