// One card of the graph: a step, or a group with its counts. Below half size only shape and colour.
import { Handle, type Node as FlowNode, type NodeProps, Position, useStore } from "@xyflow/react";
import { memo } from "react";
import { useSecond, planeNow } from "@/live/clock";
import { count, duration } from "@/look/format";
import { colourOf, lookOf } from "@/look/words";
import { Glyph } from "@/parts/state-mark";
import type { Row } from "./folds";
import { type Forest, type Step, countsOf, has, isOpen, nameOf, tookOf, troubleOf } from "./forest";
import { FunctionName, Marks, Tally } from "./row-cell";
import { lookWord, sentence, whyOf } from "./row-words";
import { p50 } from "./time-view";

export type CardData = { row: Row; step: Step | null; forest: Forest; selected: boolean; path: boolean };

/** A group's numbers hang on the forest; a step's card only on its step. */
export function sameData(a: CardData, b: CardData): boolean {
  if (a.selected !== b.selected || a.path !== b.path || a.step !== b.step) return false;
  if (a.row.kind === "group" || b.row.kind === "group") return a.forest === b.forest && a.row.kind === b.row.kind && "open" in a.row && "open" in b.row && a.row.open === b.row.open;
  return a.row.kind === "step" && b.row.kind === "step" && a.row.open === b.row.open && a.row.hidden === b.row.hidden && a.row.way === b.row.way && a.row.number === b.row.number;
}

const hidden = { opacity: 0, pointerEvents: "none", width: 1, height: 1, minWidth: 0, minHeight: 0, border: 0 } as const;
const small = (state: { transform: [number, number, number] }) => state.transform[2] < 0.5;

const StepCard = memo(function StepCard({ data }: NodeProps<FlowNode<CardData, "card">>) {
  const tiny = useStore(small);
  const { row, step, forest } = data;
  const look = step ? lookOf(lookWord(step)) : groupLook(row, forest);
  const colour = colourOf(look.colour);
  return (
    <>
      <Handle type="target" position={Position.Left} style={hidden} isConnectable={false} />
      {tiny ? (
        <div className="card-small" style={{ color: colour }} data-state={step?.state} data-mark={step ? marksOf(step) : undefined} data-step={step?.id} data-selected={data.selected || undefined}><Glyph shape={look.shape} /></div>
      ) : (
        <div
          className="card" style={{ color: colour }} data-state={step?.state} data-mark={step ? marksOf(step) : undefined} data-step={step?.id}
          data-selected={data.selected || undefined} data-path={data.path || undefined} data-group={row.kind === "group" || undefined}
          data-way={(row.kind === "step" && row.way) || undefined} title={step ? sentence(forest, step, planeNow()) : undefined}
        >
          <div className="card-name">
            <span className="inline-flex flex-none" style={{ color: colour }}><Glyph shape={look.shape} />{step && has(step, "stoppedKnowing") && "?"}</span>
            <span className="truncate">{step ? <FunctionName name={nameOf(forest, step)} /> : row.kind === "group" && <FunctionName name={forest.names[row.name] ?? "?"} />}</span>
            {row.kind === "group" && <span className="text-text-2">×{count(row.members.length)}</span>}
            {row.kind === "step" && row.number !== null && <span className="text-xs text-text-3">#{row.number}</span>}
            {step && <span className="ml-auto inline-flex items-center gap-1"><Marks step={step} /></span>}
          </div>
          <div className="card-says">{step ? <StepSays row={row} step={step} /> : <GroupSays row={row} forest={forest} />}</div>
        </div>
      )}
      <Handle type="source" position={Position.Right} style={hidden} isConnectable={false} />
    </>
  );
});

function StepSays({ row, step }: { row: Row; step: Step }) {
  const why = whyOf(step);
  const folded = row.kind === "step" && row.open === false ? row.hidden : 0;
  return (
    <>
      <span className="flex-none">{has(step, "replayed") ? "reused" : isOpen(step) ? <Going step={step} /> : duration(tookOf(step, 0))}</span>
      {step.segments.some(([kind]) => kind === "absorbed") && !isOpen(step) && <span className="flex-none text-wait" title="waited for its agent to restart">↻</span>}
      {why && <span className="truncate">{why}</span>}
      {folded > 0 && <span className="ml-auto flex-none">+{count(folded)}</span>}
    </>
  );
}

function Going({ step }: { step: Step }) {
  useSecond();
  return <>{duration(Math.floor(tookOf(step, planeNow()) / 1000) * 1000)}</>;
}

function GroupSays({ row, forest }: { row: Row; forest: Forest }) {
  if (row.kind !== "group") return null;
  const middle = p50(row.members.map((index) => forest.steps[index] as Step));
  return <><Tally counts={countsOf(forest, row.members)} />{middle !== null && <span className="ml-auto">p50 {duration(middle)}</span>}</>;
}

function groupLook(row: Row, forest: Forest) {
  if (row.kind !== "group") return lookOf(null);
  const troubles = new Set(row.members.map((index) => troubleOf(forest.steps[index] as Step)));
  for (const [trouble, state] of [["failed", "failed"], ["waiting", "waiting"], ["running", "running"]] as const) if (troubles.has(trouble)) return lookOf(state);
  return lookOf(row.members.every((index) => forest.steps[index]?.state === "cancelled") ? "cancelled" : "succeeded");
}

function marksOf(step: Step): string {
  const marks: string[] = [];
  if (has(step, "observed")) marks.push("observed");
  if (has(step, "detached")) marks.push("detached");
  if (has(step, "replayed")) marks.push("reused");
  if (has(step, "stoppedKnowing")) marks.push("doubt");
  return marks.join(" ");
}

export const CARD_TYPES = { card: StepCard };
