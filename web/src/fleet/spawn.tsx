// The form that places a worker. Before it is sent the plane says where it would go and why not
// elsewhere; a refusal stays in the form with the reason of each node.
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useDeferredValue, useEffect, useId, useRef, useState } from "react";
import { Problem } from "@/api/problem";
import { ForScope } from "@/login/ask";
import { Link, navigate, path } from "@/router";
import { useBarred } from "@/parts/act";
import { KeyHint } from "@/parts/key-hint";
import { Plain } from "@/parts/plain";
import { CommandLine } from "@/parts/says";
import { useKeys } from "@/shell/keys";
import { type Placed, place, wouldPlace } from "./calls";
import { PassedOverList } from "./drift";
import type { PassedOver, PlacementPlan } from "./shapes";
import { WorkerMark } from "./worker-mark";
import { EMPTY, type Typed, commandOf, wantedOf } from "./spawn-form";

export function Spawn({ close, node }: { close(): void; node: string }) {
  const [typed, setTyped] = useState<Typed>(() => (node ? { ...EMPTY, where: "node", node } : EMPTY));
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [placed, setPlaced] = useState<Placed>();
  const key = useRef("");
  const set = (changes: Partial<Typed>) => {
    setTyped((before) => ({ ...before, ...changes }));
    key.current = "";
    setProblem(undefined);
    setPlaced(undefined);
  };
  useKeys([{ key: "Escape", does: "close the form", always: true, run: close }]);
  const made = wantedOf(typed);
  const barred = useBarred({ scope: "operate" });
  const send = async () => {
    if (!("wanted" in made) || sending || barred !== undefined) return;
    key.current ||= crypto.randomUUID();
    setSending(true);
    setProblem(undefined);
    try {
      const answer = await place(made.wanted, key.current);
      setPlaced(answer);
      if (answer.started) navigate(path("fleet", "workers", answer.worker.id, ...(answer.worker.io === "pty" ? ["terminal"] : [])));
    } catch (error) {
      setProblem(Problem.of(error));
    } finally {
      setSending(false);
    }
  };
  return (
    <section aria-labelledby="spawn" className="rounded-md border border-line bg-surface p-4">
      <div className="mb-3 flex items-center justify-between">
        <h2 id="spawn">Spawn a worker</h2>
        <button type="button" className="button" onClick={close}>Close<KeyHint k="Escape" /></button>
      </div>
      <div className="grid gap-6 lg:grid-cols-2">
        <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void send(); }}>
          <Field label="Command" hint="run without a shell">
            {(id) => <input id={id} className="field font-mono" autoFocus required spellCheck={false} placeholder="python main.py" value={typed.command} onChange={(event) => set({ command: event.target.value })} />}
          </Field>
          <fieldset className="flex flex-wrap items-center gap-x-4 gap-y-1">
            <legend className="text-text-2">Where</legend>
            {(["anywhere", "node", "labels"] as const).map((where) => (
              <label key={where} className="flex min-h-6 items-center gap-1">
                <input type="radio" name="where" checked={typed.where === where} onChange={() => set({ where })} />
                {where === "anywhere" ? "where there is most room" : where === "node" ? "on this node" : "on nodes with labels"}
              </label>
            ))}
          </fieldset>
          {typed.where === "node" && (
            <Field label="Node">{(id) => <input id={id} className="field" value={typed.node} spellCheck={false} onChange={(event) => set({ node: event.target.value })} />}</Field>
          )}
          {typed.where === "labels" && (
            <Field label="Labels" hint="all of them">{(id) => <input id={id} className="field" placeholder="gpu zone=eu" value={typed.labels} spellCheck={false} onChange={(event) => set({ labels: event.target.value })} />}</Field>
          )}
          <div className="grid gap-3 sm:grid-cols-2">
            <Field label="Terminal">
              {(id) => (
                <select id={id} className="field" value={typed.io} onChange={(event) => set({ io: event.target.value as Typed["io"] })}>
                  <option value="pty">a terminal, to watch and drive</option>
                  <option value="pipes">pipes, output only</option>
                </select>
              )}
            </Field>
            <Field label="When it ends">
              {(id) => (
                <select id={id} className="field" value={typed.restart} onChange={(event) => set({ restart: event.target.value as Typed["restart"] })}>
                  <option value="never">it has ended</option>
                  <option value="on-failure">start again after a failure</option>
                  <option value="always">always start again</option>
                </select>
              )}
            </Field>
            {typed.restart !== "never" && (
              <Field label="At most so often in a row" hint="empty: without end">
                {(id) => <input id={id} className="field" inputMode="numeric" value={typed.max} onChange={(event) => set({ max: event.target.value })} />}
              </Field>
            )}
            <Field label="Wait for a place" hint="like 10m; empty: no">
              {(id) => <input id={id} className="field" value={typed.queue} onChange={(event) => set({ queue: event.target.value })} />}
            </Field>
          </div>
          <details>
            <summary className="min-h-6 cursor-pointer text-text-2">name, folder, variables</summary>
            <div className="grid gap-3 pt-2 sm:grid-cols-2">
              <Field label="Name" hint="made from the command">{(id) => <input id={id} className="field" spellCheck={false} value={typed.name} onChange={(event) => set({ name: event.target.value })} />}</Field>
              <Field label="Folder" hint="an absolute path">{(id) => <input id={id} className="field font-mono" spellCheck={false} value={typed.cwd} onChange={(event) => set({ cwd: event.target.value })} />}</Field>
              <div className="sm:col-span-2">
                <Field label="Variables" hint="NAME=value, one a line; stored sealed, shown nowhere">
                  {(id) => <textarea id={id} className="field font-mono" rows={3} spellCheck={false} autoComplete="off" value={typed.env} onChange={(event) => set({ env: event.target.value })} />}
                </Field>
              </div>
            </div>
          </details>
          <div className="flex flex-wrap items-center gap-3">
            <button type="submit" className="button" data-primary disabled={!("wanted" in made) || sending || barred !== undefined} title={barred}>{sending ? "placing…" : "Spawn"}</button>
            {barred && <span className="text-wait">{barred}</span>}
            {"missing" in made && typed.command !== "" && <span className="text-text-2">still needs {made.missing}</span>}
          </div>
          {"wanted" in made && <CommandLine command={commandOf(made.wanted)} />}
        </form>
        <div aria-live="polite" className="min-w-0">
          <ForScope scope="operate" what="Starting a process">
            {problem ? <Refusal problem={problem} />
              : placed ? <Receipt placed={placed} />
              : "wanted" in made ? <Plan typed={typed} /> : <p className="text-text-3">Where it would go is shown here.</p>}
          </ForScope>
        </div>
      </div>
    </section>
  );
}

function Field({ label, hint, children }: { label: string; hint?: string; children(id: string): ReactNode }) {
  const id = useId();
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id}><span className="text-text-2">{label}</span>{hint && <span className="text-text-3"> · {hint}</span>}</label>
      {children(id)}
    </div>
  );
}

/** Where it would go, asked again when the typing pauses. */
function Plan({ typed }: { typed: Typed }) {
  const made = wantedOf(useDeferredValue(typed));
  // Variables do not matter for the place, and need not travel for a look.
  const wanted = "wanted" in made ? { ...made.wanted, env: undefined } : undefined;
  const [settled, setSettled] = useState(wanted);
  const text = JSON.stringify(wanted);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text === undefined ? undefined : JSON.parse(text)), 300);
    return () => clearTimeout(timer);
  }, [text]);
  const plan = useQuery<PlacementPlan, Problem>({
    queryKey: ["/api/v1/fleet/workers", "plan", JSON.stringify(settled)],
    queryFn: () => wouldPlace(settled as NonNullable<typeof settled>),
    enabled: settled !== undefined,
    staleTime: 2_000,
    placeholderData: (before) => before,
  });
  if (plan.error) return <Refusal problem={plan.error} />;
  if (!plan.data) return null;
  const { would, text: sentence, hint, passed_over, passed_over_counts, candidates } = plan.data;
  return (
    <div className="flex flex-col gap-2">
      <p className={would === "refuse" ? "text-fail" : undefined}><b>{would === "place" ? "Would be placed. " : would === "queue" ? "Would wait. " : "Would be refused. "}</b>{sentence}</p>
      {hint && <p className="text-text-2">{hint}</p>}
      {candidates.length > 1 && <p className="text-text-2">Then: {candidates.slice(1, 6).map((one) => one.name).join(", ")}</p>}
      {passed_over.length > 0 && <><h3>Passed over</h3><PassedOverList over={passed_over} counts={passed_over_counts} /></>}
    </div>
  );
}

function Refusal({ problem }: { problem: Problem }) {
  const body = problem.detail.body as { details?: { passed_over?: PassedOver[]; hint?: string; worker?: { id?: string } } } | undefined;
  const details = body?.details;
  return (
    <div role="alert" className="flex flex-col gap-2 border-l-2 border-fail pl-3">
      <p><code className="text-fail">{problem.category}</code> {problem.message}</p>
      {problem.detail.retryAfterMs !== undefined && <p className="text-text-2">try again in {Math.ceil(problem.detail.retryAfterMs / 1000)} s: the same placement is not made twice</p>}
      {(details?.hint ?? problem.detail.hint) && <p className="text-text-2">{details?.hint ?? problem.detail.hint}</p>}
      {details?.worker?.id && <p><Link to={path("fleet", "workers", details.worker.id)} className="underline underline-offset-2">the worker that may run</Link></p>}
      {details?.passed_over && details.passed_over.length > 0 && <><h3>Passed over</h3><PassedOverList over={details.passed_over} /></>}
    </div>
  );
}

function Receipt({ placed }: { placed: Placed }) {
  const { worker } = placed;
  return (
    <div className="flex flex-col gap-2">
      <p className="flex flex-wrap items-center gap-2">
        <WorkerMark worker={worker} />
        <Link to={path("fleet", "workers", worker.id)} className="font-semibold underline underline-offset-2">{worker.name}</Link>
        <span>{worker.evidence}</span>
      </p>
      {placed.started === false && (
        <>
          <p className="text-fail">It was started and ended within its start window.</p>
          <pre className="max-h-48 overflow-auto bg-sunken p-2"><Plain text={worker.exit?.output || worker.exit?.reason || "it said nothing"} lines /></pre>
        </>
      )}
      {placed.started === undefined && <p className="text-text-2">It waits for a place: {worker.waits_for}</p>}
    </div>
  );
}
