// Calls a function: the text is the truth, the form a view of it. Checks warn, only the plane
// refuses; what came of the call is shown beside it by the execution panel.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { tokensOf } from "@/execution/json/tokens";
import { ExecutionPanel } from "@/execution/panel";
import { readPayload, textOf } from "@/execution/payload";
import { count } from "@/look/format";
import { plain } from "@/look/plain";
import { useBarred } from "@/parts/act";
import { KeyHint } from "@/parts/key-hint";
import { Plain } from "@/parts/plain";
import { CommandLine, EmptyState, ErrorPanel, Skeleton } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";
import { Id } from "@/parts/values";
import { Link, path, useQuery } from "@/router";
import { PageHead, useTitle } from "@/shell/crumbs";
import { useKeys } from "@/shell/keys";
import { type Lane, type Sent, curlOf, musterOf, sendCall } from "./call-send";
import { useDraft } from "./draft";
import { UseInput } from "./earlier";
import { warningsOf } from "./form/check";
import { readExact } from "./form/exact";
import { type Editing, EditingProvider, FieldRow, ObjectFields } from "./form/fields";
import { formOf } from "./form/model";
import { pathText, removeAt, setAt } from "./form/text";
import { type Offer, useAgent } from "./offers";
import { outlookOf } from "./outlook";
import type { Agent } from "./shapes";

export default function Page({ agent, fn }: { agent: string; fn: string }) {
  const { read, error, refetch } = useAgent(agent);
  const offer = read?.offers.find((each) => each.id === fn);
  useTitle(`Call ${agent}.${fn}`, read?.agent.state);
  return (
    <>
      <PageHead crumbs={
        <>
          <Link to="/agents" className="text-text-2">Agents</Link><span aria-hidden className="text-text-3">/</span>
          <Link to={path("agents", agent)} className="text-text-2"><Plain text={agent} /></Link><span aria-hidden className="text-text-3">/</span>
          <h1>Call <Plain text={fn} /></h1>
        </>
      } />
      {!read ? (error ? <NoAgent agent={agent} error={error} retry={() => void refetch()} /> : <Skeleton rows={8} what={`agent ${agent}`} />)
        : offer ? <Call key={`${agent}.${fn}`} agent={read.agent} offer={offer} />
          : <NoFunction agent={read.agent} fn={fn} offers={read.offers} />}
    </>
  );
}

function NoAgent({ agent, error, retry }: { agent: string; error: unknown; retry(): void }) {
  const gone = error instanceof Error && "notFound" in error && error.notFound === true;
  return gone ? <EmptyState command="muster dev -- python main.py">No agent {plain(agent)} ever registered here. Start it:</EmptyState> : <ErrorPanel error={error} what={`agent ${agent}`} retry={retry} />;
}

function NoFunction({ agent, fn, offers }: { agent: Agent; fn: string; offers: Offer[] }) {
  return (
    <EmptyState>
      <Plain text={agent.id} /> has no function <code><Plain text={fn} /></code>.{" "}
      {offers.length > 0 ? <>It has {offers.map((offer) => <Link key={offer.id} className="mr-2 text-accent" to={path("agents", agent.id, "call", offer.id)}><Plain text={offer.id} /></Link>)}</> : "It registered none."}
    </EmptyState>
  );
}

function Call({ agent, offer }: { agent: Agent; offer: Offer }) {
  const target = `${agent.id}.${offer.id}`;
  const [draft, change] = useDraft(target);
  const [from] = useQuery("from");
  const [shown, setShown] = useQuery("execution");
  const [tab, setTab] = useQuery("tab");
  const [sending, setSending] = useState(false);
  const [sent, setSent] = useState<Sent>();
  const attempt = useRef<{ key: string; of: string }>(undefined);
  const stop = useRef<AbortController>(undefined);
  useEffect(() => () => stop.current?.abort(), []);

  const made = useMemo(() => formOf(offer.input === undefined ? undefined : readExact(offer.input)), [offer.input]);
  const tokens = useMemo(() => tokensOf(draft.text.trim() === "" ? "{}" : draft.text), [draft.text]);
  const fault = tokens.fault;
  const noForm = "reason" in made ? made.reason : fault ? `the text is no JSON at character ${count(fault.at + 1)}: ${fault.says}` : tokens.nodes[0]?.kind !== "object" ? "the text is no object" : undefined;
  const warnings = useMemo(() => ("field" in made && !fault ? warningsOf(made.field, tokens) : []), [made, tokens, fault]);
  const refused = sent?.is === "problem" ? sent : undefined;
  const says = useCallback((at: readonly (string | number)[]) => {
    const name = pathText(at);
    return [
      ...(refused?.field === name ? [{ text: sentenceOf(refused.problem.message), refused: true }] : []),
      ...warnings.filter((warning) => pathText(warning.path) === name && !(refused?.field === name && sentenceOf(refused.problem.message) === warning.says))
        .map((warning) => ({ text: warning.says, refused: false })),
    ];
  }, [refused, warnings]);
  const editing: Editing = { tokens, says, set: (at, raw) => change({ text: setAt(draft.text, at, raw) }), remove: (at) => change({ text: removeAt(draft.text, at) }) };
  const form = draft.view === "form" && noForm === undefined && "field" in made ? made.field : undefined;

  useEffect(() => {
    if (!from) return;
    void readPayload(from, "input", 0, 1024 * 1024).then((part) => {
      if (part.is === "here" && part.bytes.length === part.total) change({ text: textOf(part.bytes, true).text || "{}" });
    }, () => undefined);
  }, [from, change]);

  const wanted = { target, input: draft.text, lane: draft.lane, priority: draft.priority, key: draft.key };
  const barred = useBarred({ scope: "call" });
  const go = async () => {
    if (sending || barred !== undefined) return;
    // The same again after a lost answer is the same call; after an answer it is a new one.
    const of = JSON.stringify(wanted);
    if (attempt.current?.of !== of) attempt.current = { key: crypto.randomUUID(), of };
    setSending(true);
    setSent(undefined);
    stop.current = new AbortController();
    const came = await sendCall(wanted, attempt.current.key, stop.current.signal);
    if (came.is === "stored" || !came.problem.offline) attempt.current = undefined;
    setSent(came);
    setSending(false);
    const execution = came.is === "stored" ? came.execution : came.execution;
    if (execution) setShown(execution);
  };
  useKeys([{ key: "Ctrl+Enter", does: "send the call", always: true, run: () => void go() }]);

  const outlook = outlookOf(agent, draft.lane);
  const muster = musterOf(wanted);
  const elsewhere = refused && (refused.field === undefined || !form);
  return (
    <div className="grid gap-4 pb-16 lg:grid-cols-[minmax(0,1fr)_minmax(0,1fr)] sm:pb-0">
      <section aria-label="The call" className="flex min-w-0 flex-col gap-4">
        <div className="flex flex-wrap items-center gap-3">
          <StateMark state={agent.state} evidence={agent.evidence ?? undefined} />
          <span className="font-mono"><Plain text={target} /></span>
          <span className="text-text-3">{offer.type}</span>
          <span className="flex-1" />
          <span role="group" aria-label="View" className="flex gap-1">
            {(["form", "json"] as const).map((view) => (
              <button key={view} type="button" className="button" aria-pressed={(form ? "form" : "json") === view} disabled={view === "form" && noForm !== undefined}
                title={view === "form" ? noForm : undefined} onClick={() => change({ view })}>{view === "form" ? "Form" : "JSON"}</button>
            ))}
          </span>
          <UseInput agent={agent.id} fn={offer.id} take={(text) => change({ text })} />
        </div>
        {offer.description && <p className="text-text-2"><Plain text={offer.description} lines /></p>}
        {noForm && <p className="text-text-2">As text only: {plain(noForm)}.</p>}
        {form ? (
          <EditingProvider value={editing}>
            {form.kind === "object" ? <ObjectFields field={form} path={[]} /> : <FieldRow field={form} path={[]} name="input" />}
          </EditingProvider>
        ) : (
          <div className="flex flex-col gap-1">
            <label className="flex flex-col gap-1">
              <span className="text-text-2">Input, a JSON object</span>
              <textarea className="field min-h-48 w-full font-mono text-xs" spellCheck={false} rows={Math.min(30, Math.max(8, draft.text.split("\n").length + 1))} value={draft.text}
                onChange={(event) => change({ text: event.target.value })} />
            </label>
            {fault && <p className="text-xs text-wait">at character {count(fault.at + 1)}: {plain(fault.says)}</p>}
            {warnings.map((warning) => <p key={`${pathText(warning.path)} ${warning.says}`} className="text-xs text-wait"><code><Plain text={pathText(warning.path) || "input"} /></code> {warning.says}</p>)}
          </div>
        )}
        <div className="flex flex-wrap items-end gap-4 border-t border-border pt-3">
          <fieldset className="flex items-center gap-3">
            <legend className="visually-hidden">Lane</legend>
            {([["async", "answer with the id at once"], ["sync", "hold the connection until it ends"]] as [Lane, string][]).map(([lane, title]) => (
              <label key={lane} className="flex min-h-7 items-center gap-1" title={title}>
                <input type="radio" name="lane" checked={draft.lane === lane} onChange={() => change({ lane })} /> {lane}
              </label>
            ))}
          </fieldset>
          <label className="flex items-center gap-2" title="0 goes first, 9 last">
            priority
            <select className="field" value={draft.priority} onChange={(event) => change({ priority: Number(event.target.value) })}>
              {Array.from({ length: 10 }, (_, value) => <option key={value} value={value}>{value}</option>)}
            </select>
          </label>
          <label className="flex items-center gap-2" title="The same key again joins the call that it made, for 24 hours">
            key
            <input className="field w-36" placeholder="auto" value={draft.key} maxLength={256} onChange={(event) => change({ key: event.target.value })} />
          </label>
        </div>
        <div className="flex min-w-0 flex-col gap-2">
          <CommandLine command={curlOf(wanted, window.location.origin)} />
          {muster ? <CommandLine command={muster} /> : <p className="text-xs text-text-3">muster call has no flag for a priority</p>}
        </div>
        <div className="fixed inset-x-0 bottom-[57px] z-10 flex flex-wrap items-center gap-3 border-t border-border bg-surface p-2 sm:static sm:border-0 sm:bg-transparent sm:p-0">
          <button type="button" className="button" data-solid="primary" aria-disabled={sending || barred !== undefined || undefined} title={barred} aria-describedby={barred && "send-barred"} onClick={() => void go()}>
            {sending ? "Sending …" : "Send"}<KeyHint k="Ctrl+Enter" />
          </button>
          {sending && draft.lane === "sync" && <button type="button" className="button" onClick={() => stop.current?.abort()}>Stop waiting</button>}
          {!sending && sent?.is === "stored" && <span role="status">→ <Id id={sent.execution} />{sent.replayed && " · joined a call that was there"}</span>}
          {barred && <span id="send-barred" className="text-wait">{barred}</span>}
          {!barred && outlook && <span className={outlook.tone === "fail" ? "text-fail" : outlook.tone === "wait" ? "text-wait" : "text-text-2"}>{outlook.says}</span>}
        </div>
        {outlook && agent.why && <p className="text-text-2"><Plain text={agent.why} /></p>}
        {elsewhere && <ErrorPanel error={refused.problem} />}
      </section>
      <section aria-label="What came of it" className="min-w-0">
        {shown ? (
          <div className="flex h-[calc(100dvh-96px)] min-h-80 flex-col border border-border lg:sticky lg:top-4">
            <ExecutionPanel id={shown} tab={tab || undefined} setTab={setTab} alone close={() => {
              setShown(null);
              setTab(null);
            }} />
          </div>
        ) : <Beside offer={offer} />}
      </section>
    </div>
  );
}

/** The plane's sentence without the name of the field, where it stands at the field. */
const sentenceOf = (message: string): string => message.replace(/^input\.[\w.[\]]+: /, "");

/** Beside an empty place: what the function says that it gives back. */
function Beside({ offer }: { offer: Offer }) {
  return (
    <div className="flex flex-col gap-2 text-text-2">
      <p>What comes of the call is shown here.</p>
      {offer.output && offer.output.length > 2 && (
        <details>
          <summary className="cursor-pointer">Schema of its result</summary>
          <pre className="mt-1 max-h-96 overflow-auto rounded-sm bg-sunken p-2 break-words whitespace-pre-wrap" tabIndex={0}><Plain text={offer.output} lines /></pre>
        </details>
      )}
    </div>
  );
}
