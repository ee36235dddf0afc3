// The first cell of a row, the same in every list: where it is in the tree, its state, its name,
// and for a group how many of each. Knows nothing of time.
import { memo } from "react";
import { byState, colourOf, lookOf } from "@/look/words";
import { count } from "@/look/format";
import { plain } from "@/look/plain";
import { Glyph } from "@/parts/state-mark";
import { Room } from "@/parts/values";
import { type Forest, type Step, countsOf, has, isOpen, nameOf } from "./forest";
import { codeWords } from "./cancelled";
import type { Row } from "./folds";
import { lookWord } from "./row-words";

/** `19 ✓ 1 ✕ 4 ▶`, failures first. */
export function Tally({ counts, words, grows = false }: { counts: ReadonlyMap<string, number>; words?: boolean; /** The run goes on. */ grows?: boolean }) {
  const states = [...counts].sort(([a], [b]) => byState(a, b));
  return (
    <span className={`inline-flex items-center ${words ? "gap-2" : "gap-1.5"}`}>
      {states.map(([state, many]) => {
        const { shape, colour } = lookOf(state);
        return (
          <span key={state} className="step-tally" style={{ color: colourOf(colour) }} title={`${count(many)} ${state}`}>
            <Room grows={grows}>{count(many)}</Room>
            <Glyph shape={shape} label={words ? undefined : state} />
            {words && <span>{state.replaceAll("_", " ")}</span>}
          </span>
        );
      })}
    </span>
  );
}

/** Whether the run goes on, so that its counts still change. */
export const goesOn = (forest: Forest) => forest.roots.some((index) => {
  const root = forest.steps[index];
  return root !== undefined && isOpen(root);
});

/** `agent.function`: the agent is quieter, and where room is short it is the first to be cut. */
export function FunctionName({ name }: { name: string }) {
  const dot = name.indexOf(".");
  return <span className="function-name"><span className="text-text-3">{plain(name.slice(0, dot + 1))}</span><span>{plain(name.slice(dot + 1))}</span></span>;
}

export function Marks({ step }: { step: Step }) {
  const code = codeWords(step);
  return (
    <>
      {code && <span className="inline-flex flex-none" style={{ color: "var(--run)" }} title={code} data-code><Glyph shape="triangle" label={code} />{step.receipt !== "still_running" && "?"}</span>}
      {step.attempts > 1 && <span className="step-aside" title={`sent ${step.attempts} times`}>{step.attempts}×</span>}
      {has(step, "detached") && <span className="step-aside" title="does not end with its caller">detached</span>}
      {has(step, "observed") && <Glyph shape="observed" label="reported by the agent, not dispatched" />}
      {has(step, "overCap") && <span className="step-aside" title="started over the cap: its caller holds a slot">⤒</span>}
      {has(step, "lateOutcome") && <span className="step-aside" title="an outcome came after its end: kept, not applied">late answer</span>}
    </>
  );
}

type Props = { row: Row; forest: Forest; step: Step | null; toggle(row: Row): void };

export const TreeCell = memo(function TreeCell({ row, forest, step, toggle }: Props) {
  const open = row.kind === "more" ? null : row.open;
  const guides = Array.from({ length: row.depth }, (_, at) => <span key={at} className="step-guide" />);
  return (
    <div className="step-tree">
      {guides}
      {open === null ? <span className="step-twist" aria-hidden /> : (
        <button type="button" tabIndex={-1} aria-hidden className="step-twist" onClick={(event) => { event.stopPropagation(); toggle(row); }}>
          <svg width="10" height="10" viewBox="0 0 10 10" fill="currentColor"><path d={open ? "M1 3h8L5 8z" : "M3 1v8l5-4z"} /></svg>
        </button>
      )}
      {row.kind === "step" && step && <StepName row={row} step={step} forest={forest} />}
      {row.kind === "group" && (
        <>
          <span className="step-name" title={plain(forest.names[row.name] ?? "?")}><FunctionName name={forest.names[row.name] ?? "?"} /></span>
          <GroupCounts grows={goesOn(forest)} counts={countsOf(forest, row.members)} many={row.members.length} more={row.loose > 0} />
        </>
      )}
      {row.kind === "more" && <span className="text-accent">{count(Math.min(50, row.left))} more of {count(row.left)}</span>}
    </div>
  );
});

function GroupCounts({ grows, counts, many, more }: { grows: boolean; counts: ReadonlyMap<string, number>; many: number; more: boolean }) {
  return (
    <>
      <span className="flex-none text-text-2"><Room grows={grows} ch={4} start>×{count(many)}{more && " more"}</Room></span>
      <Tally counts={counts} grows={grows} />
    </>
  );
}

function StepName({ row, step, forest }: { row: Extract<Row, { kind: "step" }>; step: Step; forest: Forest }) {
  const { shape, colour, known, word } = lookOf(lookWord(step));
  return (
    <>
      <span className="inline-flex flex-none" style={{ color: colourOf(colour) }}><Glyph shape={shape} label={lookWord(step)} />{has(step, "stoppedKnowing") && "?"}</span>
      <span className="step-name"><FunctionName name={nameOf(forest, step)} /></span>
      {row.number !== null && <span className="step-aside">#{row.number}</span>}
      {!known && <span className="step-aside">other({plain(word)}) ?</span>}
      <Marks step={step} />
      {row.open === false && row.hidden > 0 && <span className="step-aside" title={`${count(row.hidden)} steps below, folded`}>+{count(row.hidden)}</span>}
    </>
  );
}
