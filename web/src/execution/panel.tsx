// The whole story of one execution: why, input, output, attempts, logs, notes, events, raw. Shown
// at the right of a run, or as a page of its own on a phone. Knows nothing of the run's views.
import { useState } from "react";
import { Problem } from "@/api/problem";
import { copyText } from "@/look/copy";
import { BASE } from "@/router";
import { type Key, useKeys } from "@/shell/keys";
import { Panel as Boundary, EmptyState, ErrorPanel, Skeleton } from "@/parts/says";
import { Tabs } from "@/parts/tabs";
import { WhyPanel } from "@/parts/why";
import { type NamedAct, executionActs } from "./acts";
import { AttemptsTab } from "./attempts";
import { useExecution } from "./data";
import { PanelHead } from "./head";
import { EventsTab, NotesTab } from "./history";
import { LogsTab } from "./logs";
import { OutputTab } from "./output";
import { PayloadView } from "./payload-view";
import { RawTab } from "./raw";
import { type ExecutionItem, isOpen } from "./shapes";

export type ExecutionPanelProps = {
  id: string;
  /** The tab that is open (kept in the address by whoever shows the panel); absent means the best one. */
  tab?: string;
  setTab(tab: string): void;
  /** Closes the panel. */
  close?(): void;
  /** Goes to another step of the run, where the page knows its tree. Without it, only to the parent. */
  go?(where: "previous" | "next" | "parent" | "child"): void;
  /** Shown without its run: names it. */
  alone?: boolean;
};

const TABS = [
  { id: "why", name: "Why", hint: "w" },
  { id: "input", name: "Input", hint: "i" },
  { id: "output", name: "Output", hint: "o" },
  { id: "attempts", name: "Attempts", hint: "t" },
  { id: "logs", name: "Logs", hint: "m" },
  { id: "notes", name: "Notes" },
  { id: "events", name: "Events" },
  { id: "raw", name: "Raw" },
];

/** Why where it waits or did not end well, else what came of it. */
const bestTab = (execution: ExecutionItem): string => (execution.state === "succeeded" || execution.state === "running" && !execution.status_reason ? "output" : "why");

export function ExecutionPanel(props: ExecutionPanelProps) {
  const { execution, error, again } = useExecution(props.id);
  const { go } = props;
  // Also while the next step is being read: who walks quickly loses no key.
  useKeys(go
    ? [
        { key: "[", does: "step before", run: () => go("previous") },
        { key: "]", does: "step after", run: () => go("next") },
        { key: "{", does: "calling step", run: () => go("parent") },
        { key: "}", does: "first called step", run: () => go("child") },
      ]
    : []);
  if (!execution) {
    return (
      <section aria-label="Execution" className="flex h-full flex-col">
        {error ? <Missing id={props.id} error={error} retry={again} close={props.close} /> : <Skeleton rows={10} what={`execution ${props.id}`} />}
      </section>
    );
  }
  return <Shown key={props.id} {...props} execution={execution} />;
}

function Missing({ id, error, retry, close }: { id: string; error: unknown; retry(): void; close?(): void }) {
  useKeys(close ? [{ key: "Escape", does: "close the panel", run: close }] : []);
  return (
    <>
      {Problem.of(error).notFound
        ? <EmptyState command="muster executions">There is no execution with this id. Either it never was, or retention has removed it: ended runs are kept for 30 days unless the configuration says otherwise.</EmptyState>
        : <ErrorPanel error={error} what={`execution ${id}`} retry={retry} />}
      {close && <button type="button" className="button m-3 self-start" onClick={close}>Close</button>}
    </>
  );
}

function Shown({ id, tab, setTab, close, go, alone, execution }: ExecutionPanelProps & { execution: ExecutionItem }) {
  const [event, setEvent] = useState<number>();
  // The best tab is chosen once: a step that ends while somebody reads does not change the tab.
  const [best] = useState(() => bestTab(execution));
  const open = isOpen(execution.state);
  const at = TABS.some((each) => each.id === tab) ? (tab as string) : best;
  const acts = executionActs(execution);
  const parent = execution.parent_execution_id;
  const moves: Key[] = !go && parent ? [{ key: "{", does: "calling step", run: () => window.location.assign(`${BASE}/executions/${encodeURIComponent(parent)}`) }] : [];
  useKeys([
    ...TABS.flatMap((each): Key[] => (each.hint ? [{ key: each.hint, does: each.name.toLowerCase(), run: () => setTab(each.id) }] : [])),
    ...moves,
    { key: "c", does: "copy the execution's id", run: () => copyText(id) },
    { key: "y", does: "copy the link", run: () => copyText(window.location.href) },
    ...(close ? [{ key: "Escape", does: "close the panel", run: close }] : []),
  ]);
  return (
    <section aria-label={`Execution ${execution.target}`} className="flex h-full min-h-0 flex-col bg-surface">
      <PanelHead execution={execution} acts={acts} close={close} alone={alone} />
      <Tabs label="Of the execution" tabs={TABS} open={at} set={setTab}>
        <Boundary key={at} what={at}>
          {at === "why" && (
            <WhyPanel id={id} kind="execution" actOf={(word) => actFor(acts, word)}
              openEvent={(seq) => {
                setEvent(seq);
                setTab("events");
              }} />
          )}
          {at === "input" && <PayloadView id={id} kind="input" name="Input" settled fill none="It was called without an input." />}
          {at === "output" && <OutputTab execution={execution} />}
          {at === "attempts" && <AttemptsTab id={id} why={noAttempts(execution, open)} />}
          {at === "logs" && <LogsTab id={id} open={open} />}
          {at === "notes" && <NotesTab id={id} open={open} />}
          {at === "events" && <EventsTab id={id} chosen={event} />}
          {at === "raw" && <RawTab execution={execution} />}
        </Boundary>
      </Tabs>
    </section>
  );
}

/** The act that `why` names, without its key: the button in the head has that. */
function actFor(acts: NamedAct[], word: string): NamedAct | undefined {
  const found = acts.find((act) => act.name === word);
  return found && { ...found, hint: undefined };
}

function noAttempts(execution: ExecutionItem, open: boolean): string {
  if (execution.kind === "observed") return "None: the plane did not send it, its agent reported it.";
  if (execution.replay_hit) return "None: its result was taken over from another run.";
  return open ? "Not sent yet. Why says what it waits for." : "Never sent: it ended before.";
}
