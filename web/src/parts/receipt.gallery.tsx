// What stands where an act was: its receipt, in full, in part, taken back; toasts; acts that a key
// may not do.
import { Seeded } from "@/gallery/seeded";
import type { Gallery } from "@/gallery/gallery";
import { SESSION_KEY } from "@/api/queries";
import { type Act, ActButton, Receipt } from "./act";
import { ActGroup } from "./act-group";
import { ToastCard } from "./toasts";

const READER = { signed_in: true, by: "key", principal: "reader", scopes: ["read"], needs: [{ scope: "operate", what: "approve, pause and hold" }], loopback: false };
const act = (verb: string, more: Partial<Act> = {}): Act => ({ verb, kind: "ask", scope: "operate", run: async () => "done", consequence: async () => "It would.", ...more });

const gallery: Gallery = {
  title: "Receipt, toasts, missing scope",
  states: [
    { name: "done", show: () => <Receipt state={{ is: "done", says: "ended 12: told 9, stopped 7, still running 2", partial: false }} /> },
    { name: "done, with Undo", show: () => <Receipt state={{ is: "done", says: "paused 4", partial: false }} undo={() => {}} /> },
    { name: "partial", show: () => <Receipt state={{ is: "done", says: "cancelled 3 of 4; 1 had ended", partial: true }} /> },
    { name: "undone", show: () => <Receipt state={{ is: "undone", says: "resumed 4" }} /> },
    { name: "toasts", show: () => <div className="flex flex-col items-start gap-2"><ToastCard toast={{ says: "paused run plan-trip", undo: () => {} }} /><ToastCard toast={{ says: "resumed" }} /></div> },
    { name: "no scope: one button, and a group that says it once", show: () => (
      <Seeded answers={[[SESSION_KEY, READER]]}>
        <div className="flex flex-col items-start gap-2">
          <ActButton act={act("Pause")} />
          <span className="flex flex-wrap gap-2"><ActGroup><ActButton act={act("Approve", { primary: true })} /><ActButton act={act("Refuse", { danger: true })} /><ActButton act={act("Restart", { scope: undefined })} /></ActGroup></span>
        </div>
      </Seeded>
    ) },
    { name: "offline", show: () => <ActButton act={act("Drain", { scope: undefined, disabled: "the plane does not answer; acts wait until it does" })} /> },
  ],
};
export default gallery;
