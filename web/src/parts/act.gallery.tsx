// The button of an act in its states.
import { Problem } from "@/api/problem";
import type { Gallery } from "@/gallery/gallery";
import { type Act, ActButton, Confirm, Partly } from "./act";
import type { ActState } from "./act-state";

const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));
const pause: Act = { verb: "Pause", object: "run plan-trip", kind: "undo", command: "muster pause run_…", run: async () => (await wait(400), "paused"), undo: async () => (await wait(400), "resumed") };
const cancel: Act = { verb: "Cancel", kind: "ask", danger: true, command: "muster cancel exec_…", consequence: async () => (await wait(300), "Stops 3 executions, tells 1 agent."), run: async () => (await wait(600), "cancelled 3") };
const wide: Act = { ...cancel, kind: "wide", confirm: "plan-trip", run: async () => new Partly("cancelled 3 of 4; 1 had ended") };
const shown = (state: ActState, act = cancel) => <Confirm act={act} state={state} go={() => {}} keep={() => {}} />;

const gallery: Gallery = {
  title: "ActButton",
  states: [
    { name: "reversible, with Undo", show: () => <ActButton act={pause} /> },
    { name: "asks at the button", show: () => <ActButton act={cancel} /> },
    { name: "asks for the name", show: () => <ActButton act={wide} /> },
    { name: "cannot be done", show: () => <ActButton act={{ ...cancel, disabled: "it has ended" }} /> },
    { name: "refused", show: () => <ActButton act={{ ...cancel, consequence: () => Promise.reject(new Problem("permission_denied", "needs a key with the scope operate", 403)) }} /> },
    { name: "checking", show: () => shown({ is: "checking" }) },
    { name: "confirm", show: () => shown({ is: "confirm", says: "Stops 3 executions, tells 1 agent.", key: "k" }) },
    { name: "confirm with the name", show: () => shown({ is: "confirm", says: "Stops 30 executions.", key: "k" }, wide) },
    { name: "sending", show: () => shown({ is: "sending", says: "Stops 3 executions.", key: "k" }) },
    { name: "the answer was lost", show: () => shown({ is: "failed", during: "sending", key: "k", problem: new Problem("offline", "the plane did not answer", 0) }) },
  ],
};
export default gallery;
