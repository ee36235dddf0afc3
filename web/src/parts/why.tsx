// The Why panel: verdict, facts, rule, what happens next, what would change it, what was ruled
// out. One component for executions, runs, agents, nodes, workers, queues and duties; the plane
// says it all, this only adds ages.
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect } from "react";
import { addressOf, send } from "@/api/client";
import { queries } from "@/api/queries";
import type { Problem } from "@/api/problem";
import { type Why, type WhyChange, type WhyFact, type WhyNext, isOpen } from "@/execution/shapes";
import { planeNow, useSecond } from "@/live/clock";
import { type LiveFrame, useLive } from "@/live/stream";
import { plain } from "@/look/plain";
import { docWords } from "@/look/said";
import { lookOf } from "@/look/words";
import { Link, path } from "@/router";
import { type Act, ActButton } from "./act";
import { ActGroup } from "./act-group";
import { Plain } from "./plain";
import { Said } from "./said";
import { AsOf, CommandLine, ErrorPanel, Skeleton } from "./says";
import { StateMark } from "./state-mark";
import { Age, Id, Lasting, Unknown, msOf } from "./values";

export type WhyProps = {
  id: string;
  /** Needed only for a queue, whose id is its agent's. */
  kind?: "queue" | "duty" | "instance" | "agent" | "run" | "execution" | "node" | "worker";
  /** The act that does what a change names (`cancel`, `approve` …), where this page has it. */
  actOf?(word: string): Act | undefined;
  /** Shows the event of this number; without it facts are not linked. */
  openEvent?(seq: number): void;
};

const keyOf = (id: string, kind?: string) => ["why", id, kind ?? null] as const;

/** The topic whose events can change the answer. */
function topicOf(id: string, kind: string | undefined): string {
  if (kind === "queue") return "queues";
  if (kind === "duty") return "summary";
  if (kind === "instance") return "agents";
  return kind === undefined ? "" : `${kind}:${id}`;
}

/** What a plane leaves out is nothing said, not a broken page. */
export function whole(said: Partial<Why>, kind: Why["kind"] = "execution"): Why {
  return {
    id: "", kind, as_of: "", name: "", verdict: "", ...said,
    state: said.state ?? "unknown", since: said.since ?? null,
    rule: said.rule && typeof said.rule === "object" ? said.rule : { id: "", text: typeof said.rule === "string" ? said.rule : "", doc: "" },
    facts: said.facts ?? [], next: said.next ?? [], changes: said.changes ?? [], ruled_out: said.ruled_out ?? [],
  };
}

/** The evidence, kept fresh: asked again when something happened, or when what was due is. */
export function useWhy(id: string, kind?: WhyProps["kind"]) {
  const answer = useQuery<Why, Problem>({
    queryKey: keyOf(id, kind),
    queryFn: async ({ signal }) => {
      const address = addressOf("/api/v1/why/{id}", { path: { id }, query: { kind } });
      const body = await send(address, { headers: { accept: "application/json" }, signal });
      return whole((await body.json()) as Partial<Why>, kind);
    },
    staleTime: 2_000,
    refetchInterval: 15_000,
  });
  const again = useCallback(() => void queries.invalidateQueries({ queryKey: keyOf(id, kind) }), [id, kind]);
  const topic = topicOf(id, answer.data?.kind ?? kind);
  useLive(
    topic ? [topic] : [],
    useCallback(
      (frame: LiveFrame) => {
        if (frame.type === "resync" || frame.type === "changed") again();
        else if (Object.values(frame.event).includes(id)) again();
      },
      [id, again],
    ),
  );
  const due = answer.data?.next.map((next) => msOf(next.at)).filter((at): at is number => at !== null && at > planeNow());
  const soonest = due && due.length > 0 ? Math.min(...due) : null;
  useEffect(() => {
    if (soonest === null) return;
    const timer = setTimeout(again, Math.min(soonest - planeNow() + 400, 2 ** 30));
    return () => clearTimeout(timer);
  }, [soonest, again]);
  return { ...answer, again };
}

/** Why a thing is as it is, by its id. */
export function WhyPanel({ id, kind, actOf, openEvent }: WhyProps) {
  const { data: why, error, again, dataUpdatedAt } = useWhy(id, kind);
  if (!why) {
    return error ? <ErrorPanel error={error} what="why" retry={again} /> : <Skeleton rows={6} what={`why ${plain(id)}`} />;
  }
  return <WhyShown why={why} actOf={actOf} openEvent={openEvent} staleSince={error ? dataUpdatedAt : undefined} />;
}

/** One answer, in its order. `staleSince`: a newer one could not be had since then. */
export function WhyShown({ why, actOf, openEvent, staleSince }: Pick<WhyProps, "actOf" | "openEvent"> & { why: Why; staleSince?: number }) {
  const said = messageOf(why);
  return (
    <section aria-label={`Why ${plain(why.name || why.id)}`} className="flex flex-col gap-4 p-3">
      <p className="flex flex-wrap items-baseline gap-x-2 text-base">
        <StateMark state={why.state} />
        <strong className="min-w-0 break-words"><Said text={why.verdict} links /></strong>
        {staleSince !== undefined && <AsOf at={staleSince} />}
      </p>
      <Header why={why} />
      {said !== null && (
        <Part name="What it said">
          <pre className="max-h-48 overflow-auto rounded-sm bg-sunken p-2 text-xs break-words whitespace-pre-wrap" tabIndex={0}><Plain text={said} lines /></pre>
        </Part>
      )}
      <Part name="Evidence">
        <EvidenceTable facts={why.facts} openEvent={openEvent} />
      </Part>
      {why.rule.text && <Part name="Rule">
        <p>
          <Said text={why.rule.text} links /> <Doc doc={why.rule.doc} />
        </p>
      </Part>}
      {why.next.length > 0 && (
        <Part name="Next">
          <ul className="flex flex-col gap-1">
            {why.next.map((next, index) => <NextLine key={index} next={next} />)}
          </ul>
        </Part>
      )}
      {why.changes.length > 0 && (
        <Part name="Would change it">
          <ActGroup>
            <ul className="flex flex-col gap-2">
              {why.changes.map((change, index) => <ChangeLine key={index} change={change} actOf={actOf} />)}
            </ul>
          </ActGroup>
        </Part>
      )}
      {why.ruled_out.length > 0 && (
        <details>
          <summary className="cursor-pointer text-text-2">Ruled out · {why.ruled_out.length}</summary>
          <ul className="mt-1 flex flex-col gap-1 pl-4 text-text-2">
            {why.ruled_out.map((not, index) => <li key={index}><Said text={not.text} links /></li>)}
          </ul>
        </details>
      )}
    </section>
  );
}

/** The message that an execution ended with, where the sentence above does not have it already. */
export function messageOf(why: Pick<Why, "verdict" | "execution">): string | null {
  const message = why.execution?.error_message ?? why.execution?.error;
  return message && !why.verdict.includes(message) ? message : null;
}

/** `running for 3.8 s · SDKs read waiting · run_…P4D1XW trip.plan`. */
function Header({ why }: { why: Why }) {
  const known = lookOf(why.state).known;
  return (
    <p className="-mt-3 flex flex-wrap gap-x-2 text-text-2" data-why-head>
      <span>
        <Plain text={known ? why.state.replaceAll("_", " ") : why.state} />{" "}
        {why.since ? (isOpen(why.state) ? <Lasting at={why.since} /> : <Age at={why.since} />) : <>since <Unknown reason={why.since_unknown ?? "the plane does not say"} /></>}
      </span>
      {why.status && why.status !== why.state && <span>· SDKs read <Plain text={why.status} /></span>}
      {why.run_id && why.run_id !== why.id && (
        <span>· <Link to={path("runs", why.run_id)} className="text-accent"><Id id={why.run_id} plain />{why.run_name && <> <Plain text={why.run_name} /></>}</Link></span>
      )}
    </p>
  );
}

function Part({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <section aria-label={name}>
      <h3 className="mb-1 text-xs text-text-3">{name}</h3>
      {children}
    </section>
  );
}

/** Where the rule is written: a link to what can be opened from here, else where to look it up. */
function Doc({ doc }: { doc: string }) {
  if (!doc) return null;
  if (/^https?:\/\//i.test(doc)) return <a className="text-accent underline" href={doc} target="_blank" rel="noopener noreferrer">read more</a>;
  return <span className="text-text-3" title={plain(doc)}>({docWords(plain(doc))})</span>;
}

/** What was seen, oldest first: how long ago, by whom, what. What nobody knows is a row too. */
export function EvidenceTable({ facts, openEvent }: { facts: readonly WhyFact[]; openEvent?(seq: number): void }) {
  if (facts.length === 0) return <p className="text-text-2">Nothing was seen of it yet.</p>;
  return (
    <table className="w-full border-collapse">
      <thead className="visually-hidden">
        <tr><th scope="col">Age</th><th scope="col">Seen by</th><th scope="col">What</th></tr>
      </thead>
      <tbody>
        {facts.map((fact, index) => (
          <tr key={`${fact.seq ?? "-"} ${index}`} className="align-top">
            <td className="w-px py-0.5 pr-3 text-right whitespace-nowrap text-text-2">
              {fact.at === null ? <Unknown reason={fact.unknown ?? "it holds now"} /> : <Age at={fact.at} plain />}
            </td>
            <td className="w-px max-w-32 truncate py-0.5 pr-3 text-text-2" title={plain(fact.by)}><Plain text={fact.by} /></td>
            <td className="py-0.5 wrap-anywhere">
              {fact.inferred && <span className="text-wait" title="inferred, not seen">≈ </span>}
              <Said text={fact.text} links />
              {fact.value !== undefined && <code className="ml-1 break-all text-text-2"><Plain text={fact.value} /></code>}
              {fact.unknown !== undefined && <span className="text-text-3">: not known, <Plain text={fact.unknown} /></span>}
              {fact.seq !== undefined && openEvent && (
                <button type="button" className="ml-2 text-xs text-accent hover:underline"
                  onClick={() => openEvent(fact.seq as number)}>event {fact.seq}</button>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What happens by itself, counting down. Past its time it is due, and nobody guesses how it went. */
function NextLine({ next }: { next: WhyNext }) {
  useSecond();
  const at = msOf(next.at);
  const late = at !== null && planeNow() - at >= 1000;
  return (
    <li className="flex gap-3">
      <span className={`w-24 shrink-0 ${late ? "text-wait" : "text-text-2"}`}>
        {at === null ? "when it comes" : <Age at={next.at} due />}
      </span>
      <span className="min-w-0 break-words"><Said text={next.text} links /></span>
    </li>
  );
}

function ChangeLine({ change, actOf }: { change: WhyChange; actOf?: WhyProps["actOf"] }) {
  const act = change.act === undefined ? undefined : actOf?.(change.act);
  const outside = change.act === "open" && /^https?:\/\//i.test(change.command);
  const other = change.act === "why" ? /^muster why (\S+)$/.exec(change.command)?.[1] : undefined;
  return (
    <li className="flex flex-wrap items-center gap-2">
      <span className="min-w-0 break-words"><Said text={change.text} links /></span>
      {act && <ActButton act={act} />}
      {other?.startsWith("exec_") && <Link className="text-accent underline" to={`/executions/${encodeURIComponent(other)}?tab=why`}>why</Link>}
      {outside
        ? <a className="break-all text-accent" href={change.command} target="_blank" rel="noopener noreferrer">{plain(change.command)}</a>
        : change.command && <CommandLine command={plain(change.command)} />}
    </li>
  );
}
