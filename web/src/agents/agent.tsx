// One agent: how each of its instances is and why, what it does now, what it offers, its past day.
import { useQuery as useCached } from "@tanstack/react-query";
import { type ReactNode, useCallback, useEffect, useRef } from "react";
import { addressOf, send } from "@/api/client";
import { Problem } from "@/api/problem";
import { touched } from "@/execution/ask";
import { Strip } from "@/fleet/strip";
import { planeNow } from "@/live/clock";
import { type LiveFrame, useLive } from "@/live/stream";
import { count, rfc3339 } from "@/look/format";
import { plain } from "@/look/plain";
import { ActButton } from "@/parts/act";
import { KeyHint } from "@/parts/key-hint";
import { HeldWords } from "@/parts/held";
import { Narrow } from "@/parts/narrow";
import { Plain } from "@/parts/plain";
import { AsOf, CommandLine, EmptyState, ErrorPanel, Panel, Skeleton } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";
import { Age, Id, Time, Unknown } from "@/parts/values";
import { WhyPanel } from "@/parts/why";
import { Link, navigate, path, useQuery } from "@/router";
import { PageHead, useTitle } from "@/shell/crumbs";
import { useKeys } from "@/shell/keys";
import { agentActs } from "./acts";
import { readExact } from "./form/exact";
import { type Field, formOf, wordsOf } from "./form/model";
import { type Offer, useAgent } from "./offers";
import { LastHour } from "./page";
import type { Agent, AgentHistory, AgentInstance } from "./shapes";
import { SlotBar } from "./slots";

export default function Page({ agent: id }: { agent: string }) {
  const { read, error, refetch, dataUpdatedAt } = useAgent(id);
  const [why, setWhy] = useQuery("why");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), [id]);
  useLive([`agent:${id}`, "queues"], useCallback((_: LiveFrame) => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      touched(id);
    }, 300);
  }, [id]));
  useTitle(id, read?.agent.state);
  const first = read?.offers[0];
  useKeys([
    ...(first ? [{ key: "Shift+C", does: "call a function", run: () => navigate(path("agents", id, "call", first.id)) }] : []),
    { key: "w", does: "why", run: () => setWhy(why ? null : "1") },
  ]);
  const crumbs = (
    <>
      <Link to="/agents" className="text-text-2">Agents</Link><span aria-hidden className="text-text-3">/</span>
      <h1><Plain text={id} /></h1>
      {read && <StateMark state={read.agent.state} evidence={read.agent.evidence ?? undefined} />}
      {read?.agent.evidence && <span className="hidden text-text-2 sm:inline"><Plain text={read.agent.evidence} /></span>}
      {read && error && <AsOf at={dataUpdatedAt} />}
    </>
  );
  const missing = error !== null && error !== undefined && Problem.of(error).notFound;
  if (!read || missing) {
    return (
      <>
        <PageHead crumbs={crumbs} />
        {missing ? <EmptyState command="muster dev -- python main.py">No agent {plain(id)} ever registered here, or it was retired.</EmptyState>
          : error ? <ErrorPanel error={error} what={`agent ${id}`} retry={() => void refetch()} /> : <Skeleton rows={8} what={`agent ${id}`} />}
      </>
    );
  }
  const { agent, offers } = read;
  const acts = agentActs(agent);
  return (
    <>
      <PageHead crumbs={crumbs} acts={
        <>
          {first && <Link to={path("agents", id, "call", first.id)} className="button" data-primary>Call<KeyHint k="Shift+C" /></Link>}
          {acts.map((act) => <ActButton key={act.name} act={act} />)}
        </>
      } />
      <div className="flex max-w-6xl flex-col gap-6">
        {agent.why && <p className={agent.state === "active" ? "text-text-2" : ""}><Plain text={agent.why} /></p>}
        {agent.hold && <p className="border-l-2 border-line bg-tint-neutral px-3 py-2"><StateMark state="hold" /> nothing is sent to it: {agent.hold.everything ? "everything is held" : "held"} <HeldWords hold={agent.hold} /></p>}
        {agent.pending_tags && agent.pending_tags.length > 0 && <p className="border-l-2 border-wait bg-tint-wait px-3 py-2">Calls are refused until its tags are approved: <code><Plain text={agent.pending_tags.join(", ")} /></code></p>}
        <Section name="Why" open={why !== ""} set={(open) => setWhy(open ? "1" : null)} hint="w">
          <Panel what="why"><WhyPanel id={id} kind="agent" actOf={(word) => acts.find((act) => act.name === word)} /></Panel>
        </Section>
        <Section name={`Instances · ${agent.instance_count}`}>
          <Instances instances={agent.instances} />
        </Section>
        <Section name="Now">
          <dl className="grid grid-cols-[auto_1fr] items-center gap-x-4 gap-y-1">
            <dt className="text-text-3">slots</dt><dd><SlotBar used={agent.slots.used} cap={agent.slots.cap} wide /></dd>
            <dt className="text-text-3">queue</dt>
            <dd>
              {agent.queue.depth === 0 ? "nothing waits" : (
                <><Link className="text-accent underline" to={path("queues", id)}>{count(agent.queue.depth)} {agent.queue.depth === 1 ? "waits" : "wait"}</Link>{agent.queue.oldest_at && <>, oldest <Age at={agent.queue.oldest_at} plain /></>}</>
              )}
            </dd>
            <dt className="text-text-3">last hour</dt><dd><LastHour agent={agent} words /></dd>
          </dl>
        </Section>
        <Section name="Past day"><Panel what="history"><History id={id} /></Panel></Section>
        <Section name={`Functions · ${offers.length}`}><Functions agent={agent} offers={offers} /></Section>
      </div>
    </>
  );
}

function Section({ name, children, open, set, hint }: { name: string; children: ReactNode; open?: boolean; set?(open: boolean): void; hint?: string }) {
  if (set) {
    return (
      <details open={open} onToggle={(event) => event.currentTarget.open !== open && set(event.currentTarget.open)} className="border-t border-border pt-2">
        <summary className="cursor-pointer font-semibold">{name}{hint && <KeyHint k={hint} />}</summary>
        {open && children}
      </details>
    );
  }
  return (
    <section aria-label={name} className="border-t border-border pt-2">
      <h2 className="mb-2">{name}</h2>
      <Panel what={name.split(" ")[0]?.toLowerCase()}>{children}</Panel>
    </section>
  );
}

function Instances({ instances }: { instances: readonly AgentInstance[] }) {
  if (instances.length === 0) return <p className="text-text-2">No process of it is known.</p>;
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label="Instances">
      <table className="w-full border-collapse">
        <thead className="max-sm:hidden">
          <tr className="border-b border-border text-text-3">
            {["State", "Instance", "Address", "Version", "Last sign", "In flight", "Registered", "Worker"].map((head) => <th key={head} scope="col" className={`py-1 pr-4 whitespace-nowrap ${head === "In flight" ? "text-right" : ""}`}>{head}</th>)}
          </tr>
        </thead>
        <tbody>{[...instances].reverse().map((instance) => <InstanceRows key={instance.instance_id} instance={instance} />)}</tbody>
      </table>
    </div>
  );
}

function InstanceRows({ instance }: { instance: AgentInstance }) {
  const cell = "sm:py-1 sm:pr-4 whitespace-nowrap";
  return (
    <>
      <tr className="align-baseline max-sm:flex max-sm:flex-wrap max-sm:gap-x-3 max-sm:pt-1">
        <td className={cell}><StateMark state={instance.state} evidence={instance.evidence} /></td>
        <td className={cell}><Id id={instance.instance_id} /></td>
        <td className={`${cell} font-mono text-xs wrap-anywhere max-sm:whitespace-normal`}>{instance.base_url ? <Plain text={instance.base_url} /> : <Unknown reason="another agent took its address" />}</td>
        <td className={cell}><Narrow>version</Narrow>{instance.version ? <Plain text={instance.version} /> : <Unknown reason="it registered without a version" />}</td>
        <td className={cell}><Narrow>last sign</Narrow>{instance.last_sign?.what} <Age at={instance.last_sign?.at} reason="none is known" /></td>
        <td className={`${cell} sm:text-right`}>{count(instance.in_flight)}<Narrow> in flight</Narrow></td>
        <td className={cell}><Narrow>registered</Narrow><Age at={instance.registered_at} /></td>
        <td className={cell}>
          <Narrow>worker</Narrow>{instance.worker ? <Link className="text-accent underline" to={path("fleet", "workers", instance.worker)}><Id id={instance.worker} plain /></Link> : <Unknown reason="no machine of the fleet runs it" />}
          {instance.node && <> on <Link className="text-accent underline" to={path("fleet", "nodes", instance.node)}><Plain text={instance.node} /></Link></>}
        </td>
      </tr>
      <tr className="border-b border-border max-sm:block">
        <td colSpan={8} className="pb-2 text-text-2"><Plain text={instance.evidence} />{instance.state === "unreachable_callback" && <Callback instance={instance} />}</td>
      </tr>
    </>
  );
}

/** It beats, and the plane cannot dial it: the address that was tried, and what to set. */
function Callback({ instance }: { instance: AgentInstance }) {
  return (
    <span className="mt-1 flex flex-col items-start gap-1">
      <span>The plane dialled <code><Plain text={instance.base_url} /></code> and got nowhere. Start the agent with an address that this machine can reach:</span>
      <CommandLine command="AGENT_CALLBACK_URL=http://THIS_AGENT:PORT python main.py" />
    </span>
  );
}

const DAY_MS = 24 * 60 * 60 * 1000;
const BUCKETS = 96;

function History({ id }: { id: string }) {
  const { data, error, refetch } = useCached<AgentHistory, Problem>({
    queryKey: ["agent history", id],
    queryFn: async ({ signal }) => {
      const now = planeNow();
      const query = { from: rfc3339(now - DAY_MS), to: rfc3339(now), buckets: BUCKETS };
      return (await (await send(addressOf("/api/v1/nodes/{agent}/history", { path: { agent: id }, query }), { signal })).json()) as AgentHistory;
    },
    staleTime: 30_000,
    refetchInterval: 60_000,
  });
  if (!data) return error ? <ErrorPanel error={error} what="its history" retry={() => void refetch()} /> : <Skeleton rows={2} what="its history" />;
  return (
    <div className="flex flex-col gap-2">
      <Strip buckets={data.buckets} label="Its best instance, 24 h" />
      {data.changes.length > 0 ? (
        <details>
          <summary className="cursor-pointer text-text-2">{count(data.changes.length)}{data.more ? "+" : ""} {data.changes.length === 1 ? "change" : "changes"}</summary>
          <ol className="mt-1 flex max-h-72 flex-col overflow-auto" tabIndex={0}>
            {[...data.changes].reverse().map((change, index) => (
              <li key={index} className="flex flex-wrap items-baseline gap-x-3 py-0.5">
                <span className="text-text-3"><Time at={change.at} /></span>
                <Id id={change.instance} />
                <span className="inline-flex items-center gap-1">{change.from === null ? <Unknown reason="not known" /> : <StateMark state={change.from} />} → {change.to === null ? "left the list" : <StateMark state={change.to} />}</span>
                <span className="min-w-0 text-text-2"><Plain text={change.evidence} /></span>
              </li>
            ))}
          </ol>
        </details>
      ) : <p className="text-text-3">no change of an instance in this time</p>}
    </div>
  );
}

function Functions({ agent, offers }: { agent: Agent; offers: readonly Offer[] }) {
  if (offers.length === 0) {
    return <EmptyState>It registered none. A function is one with a decorator: <code>@app.reasoner()</code> or <code>@app.skill()</code>.</EmptyState>;
  }
  return (
    <ul className="flex flex-col">
      {offers.map((offer) => {
        const idempotent = agent.functions.find((each) => each.id === offer.id)?.idempotent;
        return (
          <li key={offer.id} className="flex flex-wrap items-start gap-x-4 gap-y-1 border-b border-border py-2">
            <div className="min-w-0 flex-1 basis-72">
              <p className="flex flex-wrap items-baseline gap-x-3">
                <span className="font-mono"><Plain text={offer.id} /></span>
                <span className="text-text-3">{offer.type}{idempotent && ", idempotent: may be sent again"}</span>
                {offer.tags.map((tag) => <code key={tag} className="rounded-sm bg-tint-neutral px-1"><Plain text={tag} /></code>)}
              </p>
              {offer.description && <p className="text-text-2"><Plain text={offer.description} lines /></p>}
              <p className="font-mono text-xs break-words text-text-2"><Plain text={signature(offer)} /></p>
              {offer.input && (
                <details>
                  <summary className="cursor-pointer text-xs text-text-3">schemas</summary>
                  <Schema name="input" text={offer.input} />
                  {offer.output && <Schema name="result" text={offer.output} />}
                </details>
              )}
            </div>
            <Link to={path("agents", agent.id, "call", offer.id)} className="button">Call</Link>
          </li>
        );
      })}
    </ul>
  );
}

function Schema({ name, text }: { name: string; text: string }) {
  return <pre className="mt-1 max-h-72 overflow-auto rounded-sm bg-sunken p-2 text-xs break-words whitespace-pre-wrap" tabIndex={0} aria-label={`Schema of its ${name}`}><Plain text={text} lines /></pre>;
}

/** What a field is, in a word or two. */
const shortOf = (field: Field): string => (field.kind === "json" ? "JSON" : (wordsOf(field).split(",")[0] ?? field.kind));

/** `{city* string, days integer}`; the reason when its schema says no fields. */
function signature(offer: Offer): string {
  const made = formOf(offer.input === undefined ? undefined : readExact(offer.input));
  if ("reason" in made) return made.reason;
  const parts = made.field.members.slice(0, 8).map((member) => `${member.name}${member.required ? "*" : ""} ${shortOf(member.field())}`);
  return `{${parts.join(", ")}${made.field.members.length > 8 ? ", …" : ""}}`;
}
