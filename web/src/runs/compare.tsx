// What differs between two runs, or a restart and its source: their steps in pairs, and below the
// lines in which the payloads of the selected pair differ.
import "./run.css";
import { useCallback, useMemo, useRef } from "react";
import { useGet } from "@/api/queries";
import { EmptyState, ErrorPanel, Panel, Skeleton } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";
import { Id } from "@/parts/values";
import { KeyHint } from "@/parts/key-hint";
import { count, duration } from "@/look/format";
import { plain } from "@/look/plain";
import { planeNow } from "@/live/clock";
import { Link, path, setQuery, useQuery } from "@/router";
import { PageHead, useTitle } from "@/shell/crumbs";
import { useKeys } from "@/shell/keys";
import { ComparePayloads } from "./compare-payloads";
import { Equality, type Verdict, useEquality } from "./equality";
import { type Step, has, isOpen, tookOf } from "./forest";
import { type Pair, differs, isReplay, paired } from "./pairing";
import { FunctionName } from "./row-cell";
import { lookWord } from "./row-words";
import { useSteps } from "./steps-store";
import { usePhone } from "./view-state";
import { useWindow } from "./window";

const ROW = 28;
const PHONE_ROW = 68;

export default function ComparePage() {
  useTitle("compare");
  const [a] = useQuery("a");
  const [b] = useQuery("b");
  if (!a || !b) {
    return (
      <>
        <PageHead crumbs={<h1>Compare</h1>} />
        <EmptyState>
          Pick two runs: in <Link to="/runs" className="text-accent">Runs</Link> select one with <kbd>x</kbd>, another with <kbd>x</kbd>, then press <kbd>=</kbd>.
        </EmptyState>
      </>
    );
  }
  return <Compared key={`${a} ${b}`} a={a} b={b} />;
}

function Compared({ a, b }: { a: string; b: string }) {
  const left = useSteps(a);
  const right = useSteps(b);
  const error = left.error ?? right.error;
  const ready = left.complete && right.complete;
  const tooMany = left.tooMany || right.tooMany;
  const pairs = useMemo(() => (ready ? paired(left.forest, right.forest) : []), [ready, left.forest, right.forest]);
  const swap = () => setQuery({ a: b, b: a, pair: null });
  useKeys([{ key: "s", does: "swap the two", run: swap }]);
  return (
    <div className="fills flex min-h-0 flex-1 flex-col">
      <PageHead
        crumbs={
          <>
            <h1>Compare</h1>
            <RunName letter="A" run={a} />
            <span className="text-text-3" aria-hidden>⇄</span>
            <RunName letter="B" run={b} />
          </>
        }
      />
      {error && !ready ? (
        <ErrorPanel error={error} what={left.error ? "run A" : "run B"} retry={() => { left.again(); right.again(); }} />
      ) : tooMany ? (
        <EmptyState>One of the runs has more steps than a page can pair: A {count(left.total)}, B {count(right.total)}.</EmptyState>
      ) : ready ? <Panel what="the pairs"><Pairs pairs={pairs} swap={swap} /></Panel> : <Skeleton what="the steps of both" />}
    </div>
  );
}

function RunName({ letter, run }: { letter: string; run: string }) {
  const { data } = useGet("/api/v1/runs/{run}", { path: { run } });
  const shown = data;
  return (
    <span className="inline-flex items-center gap-1.5">
      <b className="text-text-2">{letter}</b>
      {shown && <StateMark state={shown.state} compact evidence={shown.why} />}
      <Link to={path("runs", run)} className="text-accent">{shown ? plain(shown.name ?? shown.root?.target ?? "run") : "run"}</Link>
      <Id id={run} />
    </span>
  );
}

const keyOf = (pair: Pair) => `${pair.a?.index.toString(36) ?? ""}-${pair.b?.index.toString(36) ?? ""}`;
/** All payloads are compared at once up to this many pairs; above, those that come into sight. */
const EAGER = 200;

function Pairs({ pairs, swap }: { pairs: Pair[]; swap(): void }) {
  const phone = usePhone();
  const [only, setOnly] = useQuery("only");
  const [chosen, choose] = useQuery("pair");
  const equality = useMemo(() => new Equality(), []);
  const version = useEquality(equality);
  const box = useRef<HTMLDivElement>(null);

  const verdicts = useCallback((pair: Pair) => [equality.of(pair, "input"), equality.of(pair, "result")] as const, [equality]);
  const isDifferent = useCallback((pair: Pair) => {
    if (differs(pair)) return true;
    if (pairs.length > EAGER) return false;
    return verdicts(pair).some((verdict) => verdict === "different" || verdict === "one");
  }, [verdicts, pairs.length]);
  const different = useMemo(() => pairs.filter(isDifferent), [pairs, isDifferent, version]); // eslint-disable-line
  const shown = useMemo(() => (only === "differences" ? different : pairs).map((pair) => ({ key: keyOf(pair), pair })), [only, different, pairs]);
  const index = useMemo(() => new Map(shown.map((row, at) => [row.key, at])), [shown]);
  const height = phone ? PHONE_ROW : ROW;
  const view = useWindow(box, shown, height, phone ? 0 : ROW, useCallback((key: string) => index.get(key) ?? -1, [index]));
  const at = index.get(chosen) ?? -1;
  const selected = shown[at]?.pair ?? pairs.find((pair) => keyOf(pair) === chosen);

  const go = (key: string | undefined) => {
    if (key === undefined) return;
    choose(key);
    view.show(index.get(key) ?? -1);
  };
  const step = (by: 1 | -1) => go(shown[Math.max(0, Math.min(shown.length - 1, at + by))]?.key);
  const difference = (by: 1 | -1) => {
    const keys = different.map(keyOf);
    const here = keys.indexOf(chosen);
    if (here >= 0) return go(keys[here + by]);
    const order = by > 0 ? pairs : [...pairs].reverse();
    const from = order.findIndex((pair) => keyOf(pair) === chosen);
    go(order.slice(from + 1).map(keyOf).find((key) => keys.includes(key)));
  };
  useKeys([
    { key: "d", does: "only differences", run: () => setOnly(only === "differences" ? null : "differences") },
    { key: ">", does: "next difference", run: () => difference(1) },
    { key: "<", does: "difference before", run: () => difference(-1) },
    { key: "j", does: "next pair", run: () => step(1) },
    { key: "k", does: "pair before", run: () => step(-1) },
    ...(selected ? [{ key: "Escape", does: "close the payloads", run: () => choose(null) }] : []),
  ]);
  const template = "minmax(160px, 2fr) minmax(0, 1.4fr) minmax(0, 1.4fr) 44px 44px";
  return (
    <>
      <div className="flex flex-wrap items-center gap-3 py-1.5">
        <button type="button" className="button aria-pressed:bg-selected" aria-pressed={only === "differences"} onClick={() => setOnly(only === "differences" ? null : "differences")}>only differences<KeyHint k="d" /></button>
        <button type="button" className="button" disabled={different.length === 0} onClick={() => difference(-1)} aria-label="Difference before">&lt;</button>
        <button type="button" className="button" disabled={different.length === 0} onClick={() => difference(1)} aria-label="Next difference">&gt;</button>
        <button type="button" className="button" onClick={swap}>Swap<KeyHint k="s" /></button>
        <span className="text-text-2">
          {count(pairs.length)} {pairs.length === 1 ? "pair" : "pairs"}, {count(different.length)} differ
          {pairs.length > EAGER && " in how they ended or in being there; payloads are compared as they come into sight"}
        </span>
      </div>
      <div className="flex min-h-0 flex-1 flex-col gap-2">
        <div className="relative min-h-[120px] flex-1">
          {shown.length === 0 ? <EmptyState>{pairs.length === 0 ? "Neither run has steps." : "No pair differs."}</EmptyState> : (
            <div
              ref={box} className="steps max-h-full overflow-y-scroll" role="treegrid" aria-label="Pairs of steps" aria-rowcount={shown.length} tabIndex={0}
              aria-activedescendant={at >= 0 ? `pair-${chosen}` : undefined} onScroll={view.onScroll}
              onKeyDown={(event) => {
                const by = { ArrowDown: 1, ArrowUp: -1 }[event.key] as 1 | -1 | undefined;
                if (!by) return;
                event.preventDefault();
                step(by);
              }}
            >
              {!phone && (
                <div className="steps-head" role="row" style={{ gridTemplateColumns: template, height: ROW }}>
                  <div role="columnheader" className="pb-1 pl-2">Step</div><div role="columnheader" className="pb-1">A</div><div role="columnheader" className="pb-1">B</div>
                  <div role="columnheader" className="pb-1" title="Input">In</div><div role="columnheader" className="pb-1" title="Output">Out</div>
                </div>
              )}
              <div role="rowgroup" style={{ position: "relative", height: shown.length * height }}>
                {shown.slice(view.first, view.last).map(({ key, pair }, offset) => {
                  const [input, output] = verdicts(pair);
                  return (
                    <div
                      key={key} id={`pair-${key}`} role="row" className="step-row" aria-level={pair.depth + 1} aria-rowindex={view.first + offset + 1} aria-selected={key === chosen}
                      style={{ top: (view.first + offset) * height, height, gridTemplateColumns: phone ? "minmax(0, 1fr)" : template }} onClick={() => choose(key)}
                    >
                      <div role="gridcell" className="step-tree" style={{ height: ROW }}>
                        {Array.from({ length: pair.depth }, (_, level) => <span key={level} className="step-guide" />)}
                        <span className="step-name pl-1"><FunctionName name={pair.name} /></span>
                        {pair.number > 0 && <span className="step-aside">{pair.number}</span>}
                        {phone && <span className="ml-auto inline-flex gap-3 pr-2"><span>in <Sign verdict={input} /></span><span>out <Outcome pair={pair} verdict={output} /></span></span>}
                      </div>
                      <div role="gridcell" className="step-cell flex items-center gap-1 pl-2 sm:pl-0">{phone && <b className="text-text-3">A</b>}<SideCell step={pair.a} other={pair.b} letter="A" covered={pair.covered} /></div>
                      <div role="gridcell" className="step-cell flex items-center gap-1 pl-2 sm:pl-0">{phone && <b className="text-text-3">B</b>}<SideCell step={pair.b} other={pair.a} letter="B" covered={pair.covered} /></div>
                      {!phone && <div role="gridcell" className="step-cell"><Sign verdict={input} /></div>}
                      {!phone && <div role="gridcell" className="step-cell"><Outcome pair={pair} verdict={output} /></div>}
                    </div>
                  );
                })}
              </div>
            </div>
          )}
        </div>
        {selected && <div className="max-h-[55%] overflow-auto rounded-sm border border-border bg-surface"><ComparePayloads key={chosen} pair={selected} close={() => choose(null)} /></div>}
      </div>
    </>
  );
}

function SideCell({ step, other, letter, covered }: { step: Step | null; other: Step | null; letter: string; covered: boolean }) {
  if (!step && covered) return <span className="text-text-3" title="its caller was taken over, so it did not have to run again">⇥ reused with its caller</span>;
  if (!step) return <span className="text-text-3">— not in {letter}</span>;
  if (has(step, "replayed")) {
    return <span title={`taken over from ${step.replayOf ?? "another execution"}`}><StateMark state="reused" />{other && !isReplay(step, other) && <span className="text-text-3"> from another run</span>}</span>;
  }
  return (
    <span className="inline-flex items-center gap-2">
      <StateMark state={lookWord(step)} compact doubtful={has(step, "stoppedKnowing")} />
      <span>{duration(tookOf(step, planeNow()))}{isOpen(step) && " …"}</span>
      {step.category && <code className="text-text-2">{step.category}</code>}
    </span>
  );
}

const SIGNS: Record<Verdict, [sign: string, says: string, colour: string]> = {
  equal: ["=", "equal", "text-text-3"],
  different: ["≠", "different", "text-wait"],
  one: ["≠", "one side has none", "text-wait"],
  none: ["—", "neither side has one", "text-text-3"],
  large: ["?", "too large to compare unasked: open the pair", "text-text-2"],
  unknown: ["?", "could not be read: removed by retention, or no answer", "text-text-2"],
  pending: ["…", "being compared", "text-text-3"],
};

function Sign({ verdict }: { verdict: Verdict | null }) {
  const [sign, says, colour] = verdict ? SIGNS[verdict] : ["—", "nothing to compare", "text-text-3"];
  return <span className={colour} title={says}><span aria-hidden>{sign}</span><span className="visually-hidden">{says}</span></span>;
}

/** How it ended counts before what came of it. */
function Outcome({ pair, verdict }: { pair: Pair; verdict: Verdict | null }) {
  const { a, b } = pair;
  if (a && b && !isOpen(a) && !isOpen(b) && a.state !== b.state) {
    return <span className="text-fail" title={`${a.state} in A, ${b.state} in B`}><span aria-hidden>✕</span><span className="visually-hidden">{a.state} in A, {b.state} in B</span></span>;
  }
  return <Sign verdict={verdict} />;
}
