// The run as a list: what each step is, why, how long it took. Carries in words everything that the
// other views draw.
import { memo, useMemo } from "react";
import { useDisplay } from "@/look/display";
import { duration, rfc3339, time } from "@/look/format";
import { saysLeft } from "@/look/left";
import { saidShort } from "@/look/said";
import { planeNow, useSecond } from "@/live/clock";
import { SaidThen } from "@/parts/said";
import { StateMark } from "@/parts/state-mark";
import { Unknown } from "@/parts/values";
import { type Forest, type Step, countsOf, has, isOpen, tookOf } from "./forest";
import { type CellsProps, type GridModel, StepGrid } from "./grid";
import { Tally, goesOn } from "./row-cell";
import { lookWord, whyOf } from "./row-words";
import { p50 } from "./time-view";

type Shared = { phone: boolean; /** When the run began. */ from: number };
/** States that need no reason: what is well has none. */
const SPEAKS_FOR_ITSELF = new Set(["succeeded", "running"]);
const PHONE_COLUMNS = "minmax(0, 1fr) 96px";

export function ListView({ phone, ...props }: GridModel & { label: string; height: number; phone: boolean }) {
  const from = props.forest.steps[0]?.created ?? 0;
  const shared = useMemo<Shared>(() => ({ phone, from }), [phone, from]);
  return (
    <StepGrid
      {...props}
      phone={phone}
      template={phone ? PHONE_COLUMNS : undefined}
      columns={phone ? undefined : "list-columns"}
      headHeight={28}
      head={phone ? (
        <><div role="columnheader" className="pb-1 pl-7">Step</div><div role="columnheader" className="pb-1 text-right pr-2">Took</div></>
      ) : (
        <>
          <div role="columnheader" className="pb-1 pl-7">Step</div>
          <div role="columnheader" className="wide-only pb-1">State</div>
          <div role="columnheader" className="pb-1">Why</div>
          <div role="columnheader" className="pb-1 pr-2 text-right">Took</div>
          <div role="columnheader" className="wide-only pb-1 pr-2 text-right" title="After the beginning of the run">Began</div>
          <div role="columnheader" className="wide-only pb-1 pr-2 text-right" title="How often it was sent">Sent</div>
        </>
      )}
      Cells={ListCells}
      shared={shared}
    />
  );
}

function ListCells({ row, step, forest, shared }: CellsProps<Shared>) {
  if (row.kind === "more") return <div role="gridcell" />;
  if (row.kind === "group") return <GroupCells members={row.members} forest={forest} phone={shared.phone} />;
  return step ? <StepCells step={step} phone={shared.phone} from={shared.from} /> : null;
}

const StepCells = memo(function StepCells({ step, phone, from }: { step: Step; phone: boolean; from: number }) {
  const why = whyOf(step);
  const { clock } = useDisplay();
  if (phone) return <div role="gridcell" className="step-cell"><span className="flush">{isOpen(step) ? <Going step={step} /> : duration(tookOf(step, 0))}</span></div>;
  return (
    <>
      <div role="gridcell" className="wide-only step-cell flex items-center"><StateMark state={lookWord(step)} doubtful={has(step, "stoppedKnowing")} /></div>
      <div role="gridcell" className="step-cell text-text-2" title={why ?? undefined}>{why !== null ? isOpen(step) && saysLeft(why) ? <SaidThen text={why} at={step.saidAt} /> : saidShort(why, clock, planeNow()) : SPEAKS_FOR_ITSELF.has(step.state) ? "" : <Unknown reason="the plane gave no reason" />}</div>
      <div role="gridcell" className="step-cell"><span className="flush">{has(step, "replayed") ? <Unknown reason="reused: it took no time of its own" /> : isOpen(step) ? <Going step={step} /> : duration(tookOf(step, 0))}</span></div>
      <div role="gridcell" className="wide-only step-cell" title={`${time(step.created, clock, planeNow())} · ${rfc3339(step.created)}`}><span className="flush">{step.created > from ? `+${duration(step.created - from)}` : "0"}</span></div>
      <div role="gridcell" className="wide-only step-cell"><span className="flush">{step.attempts === 0 ? <Unknown reason={has(step, "observed") ? "not dispatched: the agent reported it" : "not sent"} /> : step.attempts}</span></div>
    </>
  );
});

function Going({ step }: { step: Step }) {
  useSecond();
  return <>{duration(Math.floor(tookOf(step, planeNow()) / 1000) * 1000)}</>;
}

const GroupCells = memo(function GroupCells({ members, forest, phone }: { members: readonly number[]; forest: Forest; phone: boolean }) {
  const steps = members.map((index) => forest.steps[index] as Step);
  const middle = p50(steps);
  const text = middle === null ? <Unknown reason="none has ended" /> : <span title="the middle of how long they took">p50 {duration(middle)}</span>;
  if (phone) return <div role="gridcell" className="step-cell"><span className="flush">{text}</span></div>;
  return (
    <>
      <div role="gridcell" className="step-cell col-span-2"><Tally counts={countsOf(forest, members)} grows={goesOn(forest)} words /></div>
      <div role="gridcell" className="step-cell"><span className="flush">{text}</span></div>
      <div role="gridcell" className="wide-only" style={{ gridColumn: "5 / -1" }} />
    </>
  );
});
