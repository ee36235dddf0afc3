// A payload in all its forms: tree, text, folded string, part of a large one, no JSON, bytes, none,
// gone; and the parts of the execution panel.
import { Seeded } from "@/gallery/seeded";
import type { Gallery } from "@/gallery/gallery";
import { planeNow } from "@/live/clock";
import { Skeleton } from "@/parts/says";
import { PanelHead } from "./head";
import { OutputTab } from "./output";
import type { Part, PayloadKind } from "./payload";
import { PayloadView } from "./payload-view";
import type { ExecutionItem } from "./shapes";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const here = (text: string, total?: number): Part => ({ is: "here", bytes: bytesOf(text), total: total ?? bytesOf(text).length });

function Shown({ part, kind = "input", name = "Input" }: { part: Part; kind?: PayloadKind; name?: string }) {
  return (
    <Seeded answers={[[["payload", "exec_made-up", kind, null], part]]}>
      <PayloadView id="exec_made-up" kind={kind} name={name} settled none="It was called without an input." />
    </Seeded>
  );
}

const TREE = '{"city":"Lyon","days":3,"big":9223372036854775807,"exact":1.10,"open":true,"none":null,"stops":[{"name":"Bellecour"},{"name":"Part-Dieu"}],"hidden":"\\u202egnp.exe\\u0007"}';
const LONG = JSON.stringify({ text: "a long text of an agent ".repeat(140) });

const base: ExecutionItem = {
  execution_id: "exec_01M8NT7F1PEQN8S8EAYKZC1YAE", run_id: "run_01M8NT7AX7EE1B955XH9TC58TY", workflow_id: "run_01M8NT7AX7EE1B955XH9TC58TY", root_execution_id: "exec_01M8NT7AX7EE1B955XH7YJKRAD",
  status: "failed", state: "failed", agent: "weather", node_id: "weather", function: "lookup", target: "weather.lookup", type: "reasoner", kind: "dispatched", lane: "async", origin: "server",
  depth: 1, attempt: 2, priority: 3, input_size: 41, session_id: "demo", created_at: new Date(planeNow() - 60_000).toISOString(), webhook_registered: false,
} as unknown as ExecutionItem;
const failed = { ...base, error_category: "agent_error", error: "KeyError 'city'", error_details_size: 11, completed_at: new Date(planeNow() - 58_000).toISOString(), duration_ms: 2_010 } as ExecutionItem;
const doubtful = { ...failed, error_category: "outcome_unknown", error: "no word since 14:03:20", late_outcome: "succeeded" } as ExecutionItem;
const waiting = { ...base, status: "waiting", state: "waiting", wait: { cause: "approval" }, attempt: 1, over_cap: true } as unknown as ExecutionItem;

const gallery: Gallery = {
  title: "PayloadView, execution panel",
  states: [
    { name: "JSON: tree or text, exact numbers, hidden characters as escapes", show: () => <Shown part={here(TREE)} /> },
    { name: "a string over 2 KiB is folded", show: () => <Shown part={here(LONG)} /> },
    { name: "64 MiB: its beginning", show: () => <Shown part={here(`{"rows":[${Array.from({ length: 400 }, (_, n) => `{"n":${n},"name":"row ${n}"}`).join(",")},{"n":40`, 64 * 1024 * 1024)} /> },
    { name: "not JSON", show: () => <Shown part={here("{'city': 'Lyon'} Traceback (most recent call last)")} /> },
    { name: "bytes", show: () => <Shown part={{ is: "here", bytes: Uint8Array.from({ length: 60 }, (_, n) => (n * 37 + 128) % 256), total: 60 }} /> },
    { name: "empty", show: () => <Shown part={here("")} /> },
    { name: "none", show: () => <Shown part={{ is: "none" }} /> },
    { name: "gone by retention", show: () => <Shown part={{ is: "gone", says: "retention removed it 2 d ago" }} /> },
    { name: "loading", show: () => <Skeleton rows={4} what="Input" /> },
    { name: "head of a failed one", show: () => <PanelHead execution={failed} acts={[]} close={() => {}} alone /> },
    { name: "head: nobody knows how it ended, an outcome came late", show: () => <PanelHead execution={doubtful} acts={[]} /> },
    { name: "head: waits, over the cap", show: () => <PanelHead execution={waiting} acts={[]} /> },
    { name: "output of a failed one", show: () => <Seeded answers={[[["payload", failed.execution_id, "error_details", null], here('{"line":41}')]]}><OutputTab execution={failed} /></Seeded> },
    { name: "output: not yet", show: () => <OutputTab execution={waiting} /> },
  ],
};
export default gallery;
