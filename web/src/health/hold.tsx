// What is held, and lifting it: the plane says first what would be sent.
import type { components } from "muster-openapi";
import { useState } from "react";
import { act } from "@/api/client";
import { NO_REASON } from "@/agents/acts";
import { queries, useGet } from "@/api/queries";
import { count } from "@/look/format";
import { Link, path } from "@/router";
import { ActButton } from "@/parts/act";
import { HeldWords } from "@/parts/held";
import { Plain } from "@/parts/plain";
import { ErrorPanel } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";

type Lifted = components["schemas"]["Lifted"];
const refresh = () => void queries.invalidateQueries({ predicate: ({ queryKey }) => /hold|health|queues|overview/.test(String(queryKey[0])) });

export function Hold() {
  const hold = useGet("/api/v1/hold");
  const [reason, setReason] = useState("");
  if (hold.error && !hold.data) return <ErrorPanel error={hold.error} what="the hold" retry={() => void hold.refetch()} />;
  if (!hold.data) return null;
  const { held, held_agents: agents, queued } = hold.data;
  const waiting = queued.reduce((sum, each) => sum + each.executions, 0);
  return (
    <section aria-labelledby="hold" className="flex flex-col gap-2">
      <h2 id="hold" className="visually-hidden">Hold</h2>
      {held ? (
        <div className="flex flex-wrap items-center gap-x-4 gap-y-2 border-l-2 border-line bg-tint-neutral p-3">
          <span className="min-w-0 flex-1">
            <StateMark state="hold" /> Nothing is dispatched, held <HeldWords hold={hold.data} />. {count(waiting)} {waiting === 1 ? "execution waits" : "executions wait"}.
          </span>
          <Unhold />
        </div>
      ) : (
        <div className="flex flex-wrap items-center gap-2 text-text-2">
          <span>Nothing is held for all.</span>
          <ActButton act={{
            verb: "Hold everything", kind: "undo", scope: "operate", command: "muster hold --reason '…'",
            run: async (key) => {
              await act("post", "/api/v1/hold", { body: { reason: reason.trim() || NO_REASON }, key });
              setReason("");
              refresh();
              return "everything is held: what comes is queued";
            },
            undo: async (key) => {
              const lifted = await act("post", "/api/v1/unhold", { body: {}, key });
              refresh();
              return `nothing is held: ${executions(lifted.executions)} on`;
            },
          }} />
          <input className="field w-56" aria-label="Why everything is held" placeholder="why, if you like" value={reason} onChange={(event) => setReason(event.target.value)} />
        </div>
      )}
      {agents.length > 0 && (
        <ul className="flex flex-wrap gap-x-4 gap-y-1">
          {agents.map((each) => <li key={each.agent} className="flex flex-wrap items-center gap-2"><StateMark state="hold" /> <Link to={path("agents", each.agent)} className="underline underline-offset-2"><Plain text={each.agent} /></Link> <span className="text-text-2"><HeldWords hold={each} /></span></li>)}
        </ul>
      )}
    </section>
  );
}

const executions = (many: number) => `${count(many)} ${many === 1 ? "execution goes" : "executions go"}`;

function Unhold() {
  return (
    <ActButton act={{
      verb: "Unhold", kind: "wide", danger: true, scope: "operate", confirm: "everything", command: "muster unhold",
      consequence: async () => <Would lifted={await act("post", "/api/v1/unhold", { query: { dry_run: true }, body: {} })} />,
      run: async (key) => {
        const lifted = await act("post", "/api/v1/unhold", { body: {}, key });
        refresh();
        return `${executions(lifted.executions)} on`;
      },
    }} />
  );
}

function Would({ lifted }: { lifted: Lifted }) {
  return (
    <div className="flex flex-col gap-2">
      <p>{count(lifted.executions)} {lifted.executions === 1 ? "execution" : "executions"} would be sent, and {count(lifted.webhooks)} {lifted.webhooks === 1 ? "webhook" : "webhooks"}.</p>
      <ul className="max-h-48 overflow-auto">
        {lifted.queued.map((each) => <li key={each.agent} className="flex justify-between gap-4 border-t border-border py-1"><span>{each.agent}</span><span>{count(each.executions)}</span></li>)}
      </ul>
    </div>
  );
}
