// The columns of the lists of runs and executions.
import { count } from "@/look/format";
import { colourOf, lookOf } from "@/look/words";
import { SplitBar, patternOf } from "@/parts/charts";
import { Plain } from "@/parts/plain";
import { SaidThen } from "@/parts/said";
import { StateMark } from "@/parts/state-mark";
import type { Column } from "@/parts/table";
import { Age, Id, Took, Unknown } from "@/parts/values";
import { Link } from "@/router";
import { type Line, isOpen, partsOf } from "./line";

/** A bar of the states of a run's steps, with its numbers. */
export function Steps({ line }: { line: Line }) {
  const { steps } = line;
  if (!line.counts) return <Unknown reason="the plane does not say how its steps are" />;
  const { counts } = line;
  const parts = partsOf(counts);
  const says = parts.map((part) => `${count(part.count)} ${part.state}`).join(", ");
  const failed = (counts.failed ?? 0) + (counts.timeout ?? 0);
  return (
    <span className="flex items-center gap-2">
      <SplitBar label={`${count(steps ?? 0)} steps: ${says}`} width={64} parts={parts.map(({ state, count: many }) => {
        const { colour } = lookOf(state);
        return { state, count: many, colour: colourOf(colour), pattern: patternOf(state) };
      })} />
      <span>{count(steps ?? 0)}</span>
      {failed > 0 && <Link to={`${line.to}?only=failed`} tabIndex={-1} className="text-fail" title={`${count(failed)} failed`}>{count(failed)}✕</Link>}
    </span>
  );
}

export function columnsOf(what: "runs" | "executions"): Column<Line>[] {
  const steps: Column<Line> = { id: "steps", head: "Steps", width: "150px", from: "sm", card: "line", cell: (line) => <Steps line={line} /> };
  return [
    { id: "state", head: "State", width: "112px", card: "head", cell: (line) => <StateMark state={line.state} evidence={line.why} /> },
    { id: "name", head: what === "runs" ? "Run" : "Execution", width: "minmax(160px, 1fr)", card: "head", link: true, cell: (line) => <Plain text={line.name} /> },
    { id: "id", head: "Id", width: "128px", from: "sm", cell: (line) => <Id id={line.id} tabIndex={-1} /> },
    ...(what === "runs" ? [steps] : [{ id: "run", head: "Run", width: "128px", from: "lg" as const, cell: (line: Line) => <Link to={`/runs/${encodeURIComponent(line.run)}`} tabIndex={-1}><Id id={line.run} plain /></Link> }]),
    { id: "took", head: "Took", width: "88px", align: "end", card: "side", cell: (line) => <Took ms={line.took} from={line.at} to={line.ended} /> },
    { id: "at", head: "Started", width: "112px", align: "end", card: "line", sorted: "descending", cell: (line) => <Age at={line.at} /> },
  ];
}

/** Why it waits or what it failed with; nothing when all is well. */
export const secondLine = (line: Line) => (line.why && (isOpen(line.state) || line.state !== "succeeded") ? <SaidThen text={line.why} at={line.saidAt} /> : null);
