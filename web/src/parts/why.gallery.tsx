// The Why panel: facts, what is unknown or inferred, countdowns, what is overdue, and nothing said.
import type { Gallery } from "@/gallery/gallery";
import { planeNow } from "@/live/clock";
import { EvidenceTable, WhyShown, whole } from "./why";

const ago = (seconds: number) => new Date(planeNow() - seconds * 1000).toISOString();
const RUN = "run_01M8NT7AX7EE1B955XH9TC58TY";
const EXECUTION = "exec_01M8NT7F1PEQN8S8EAYKZC1YAE";

const restart = () => whole({
  id: EXECUTION, kind: "execution", as_of: ago(0), name: "hotel.search", state: "absorbed", verdict: "hotel.search waits for hotel to restart",
  rule: { id: "absorbed", text: "a failed dial is absorbed while a supervisor restarts the agent (restart_grace 15 s)", doc: "docs/liveness.md" },
  facts: [
    { seq: 41, at: ago(6.4), by: "agent", text: "hotel i-4 said goodbye", value: "SIGTERM" },
    { seq: 42, at: ago(3.8), by: "plane", text: "dial 127.0.0.1:8003 refused; no byte left, so nothing can run twice" },
    { at: ago(2), by: "plane", text: "its process is probably starting", inferred: true },
    { at: null, by: "agent", text: "no registration yet", unknown: "the new process has not registered" },
  ],
  next: [{ at: new Date(planeNow() + 3_600_000).toISOString(), text: "dial again" }, { at: ago(5), text: "failed agent_unreachable" }, { at: null, text: "an answer of its agent" }],
  changes: [{ text: "cancel it", command: `muster cancel ${EXECUTION}` }, { text: `see what called it, ${RUN}`, command: `muster why ${RUN}` }, { text: "see what is asked", command: "https://example.org/approve", act: "open" }],
  ruled_out: [{ text: "a full agent (0 of 2 slots)" }, { text: "a hold (none)" }],
});

const gallery: Gallery = {
  title: "WhyPanel, EvidenceTable",
  states: [
    { name: "facts, an unknown one, an inference, a countdown, overdue", show: () => <WhyShown why={restart()} openEvent={() => {}} /> },
    { name: "out of date", show: () => <WhyShown why={whole({ id: EXECUTION, state: "running", verdict: "it runs", rule: { id: "x", text: "its rule is on the web", doc: "https://example.org/rule" } })} staleSince={planeNow() - 60_000} /> },
    { name: "none: a plane that says nothing", show: () => <WhyShown why={whole({ id: EXECUTION })} /> },
    { name: "no fact yet", show: () => <EvidenceTable facts={[]} /> },
  ],
};
export default gallery;
