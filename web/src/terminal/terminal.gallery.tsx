// Above and below a terminal's screen in all the states of a session. Without a screen: that needs
// a worker.
import { Problem } from "@/api/problem";
import type { Gallery } from "@/gallery/gallery";
import { Foot, Head } from "./bars";
import type { TerminalScreen } from "./screen";
import type { Session, SessionState } from "./session";

const nothing = () => {};
const view = { follow: nothing, focus: nothing, setSize: nothing, lay: nothing, larger: () => 13, readerMode: nothing, finder: () => new Promise(nothing), scroll: nothing } as unknown as TerminalScreen;
const nobody = { driving: false, driver: null, viewers: 0 };
const base: SessionState = { phase: { is: "open" }, seats: { ...nobody, viewers: 1 }, dropped: 0, unconfirmed: 0, size: { rows: 32, cols: 120 } };

function Shown({ state }: { state: Partial<SessionState> }) {
  const now = { ...base, ...state };
  const session = { state: () => now, subscribe: () => nothing, type: () => false, resize: nothing, drive: () => false, watch: () => false, lostHere: nothing, again: nothing, end: nothing } as unknown as Session;
  return <section aria-label="Terminal" className="flex flex-col overflow-hidden rounded-md border border-line"><Head session={session} view={view} name="w-1" /><div className="terminal-box" style={{ minHeight: 40 }} /><Foot session={session} view={view} /></section>;
}

const gallery: Gallery = {
  title: "Terminal",
  states: [
    { name: "connecting", show: () => <Shown state={{ phase: { is: "connecting" }, seats: nobody, size: undefined }} /> },
    { name: "watching", show: () => <Shown state={{}} /> },
    { name: "driving, bytes not taken yet", show: () => <Shown state={{ seats: { driving: true, driver: "owner", viewers: 2 }, unconfirmed: 812 }} /> },
    { name: "somebody else drives, and asked for", show: () => <Shown state={{ seats: { driving: false, driver: "ci-2", viewers: 3 }, error: { code: "driven_by_another", message: "ci-2 drives" } }} /> },
    { name: "dropped: the link was slow", show: () => <Shown state={{ dropped: 214 * 1024 }} /> },
    { name: "the connection was lost", show: () => <Shown state={{ phase: { is: "lost", at: 0 }, seats: nobody }} /> },
    { name: "closed, with the reason", show: () => <Shown state={{ phase: { is: "closed", code: "agent_exited", message: "it has ended: exit 1" }, seats: nobody }} /> },
    { name: "refused: no key", show: () => <Shown state={{ phase: { is: "refused", problem: new Problem("permission_denied", "needs a key with the scope operate", 403) }, seats: nobody }} /> },
    { name: "refused for another reason", show: () => <Shown state={{ phase: { is: "refused", problem: new Problem("conflict", "it has no terminal: it was started without one", 409) }, seats: nobody }} /> },
  ],
};
export default gallery;
