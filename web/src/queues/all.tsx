// The queues of all agents: the one that waits longest first, then fixed until `n`.
import type { components } from "muster-openapi";
import { unhold } from "@/agents/acts";
import { useGet } from "@/api/queries";
import { useLive } from "@/live/stream";
import { count } from "@/look/format";
import { ActButton } from "@/parts/act";
import { FilterBar, Toggle } from "@/parts/filters";
import { Plain } from "@/parts/plain";
import { EmptyState } from "@/parts/says";
import { VirtualTable } from "@/parts/table";
import { useOrder } from "@/parts/use-order";
import { navigate, path, useQuery } from "@/router";
import { PageHead, useTitle } from "@/shell/crumbs";
import { HeldBy, LastStarts, Oldest, Rate, RunCap, Waiting } from "./cells";

export type QueueLine = components["schemas"]["QueueLine"];

/** What needs a look first: held, then the oldest. */
const byNeed = (a: QueueLine, b: QueueLine) =>
  waitOf(b) - waitOf(a) || b.running - a.running || a.agent.localeCompare(b.agent);
const waitOf = (line: QueueLine) => (line.oldest_queued_at ? -Date.parse(line.oldest_queued_at) + 1e15 : line.queued > 0 || line.absorbed > 0 ? 1 : 0);
export const waits = (line: QueueLine) => line.queued + line.absorbed + line.waiting_callers;

export function AllQueues() {
  useLive(["queues"]);
  const query = useGet("/api/v1/queues", {}, { staleTime: 30_000 });
  const [q] = useQuery("q");
  const [only, setOnly] = useQuery("only");
  const all = query.data?.queues ?? [];
  const found = all.filter((line) => (!q || line.agent.includes(q)) && (only !== "waiting" || waits(line) > 0 || line.held));
  const { rows, fresh } = useOrder(found, (line) => line.agent, byNeed);
  const waiting = all.reduce((sum, line) => sum + line.queued, 0);
  const everything = useGet("/api/v1/hold", {}, { staleTime: 30_000 }).data;
  useTitle("Queues");
  return (
    <>
      <PageHead acts={everything?.held && <ActButton act={unhold({ id: "everything", hold: { everything: true, reason: everything.reason, by: everything.by, since: everything.since } })} />} crumbs={<><h1>Queues</h1>{query.data && <span className="text-text-2">{waiting === 0 ? "nothing waits" : `${count(waiting)} ${waiting === 1 ? "waits" : "wait"}`}, {count(all.length)} {all.length === 1 ? "agent" : "agents"}</span>}</>} />
      <FilterBar filters={[{ key: "q", name: "agent", kind: "text", inline: true }]} focusKey="f" matching={{ shown: found.length, of: all.length }}>
        <Toggle on={only === "waiting"} set={(on) => setOnly(on ? "waiting" : null)}>only what waits</Toggle>
      </FilterBar>
      <VirtualTable
        label="queues" fill rows={rows} idOf={(line) => line.agent} to={(line) => path("queues", line.agent)} query={query} total={found.length} fresh={fresh} place="queues"
        columns={[
          { id: "agent", head: "Agent", width: "minmax(140px, 1.2fr)", link: true, card: "head", cell: (line) => <Plain text={line.agent} /> },
          { id: "run", head: "Run/cap", width: "80px", align: "end", from: "sm", card: "line", cell: (line) => <><span className="card-only">runs </span><RunCap line={line} /></> },
          { id: "wait", head: "Wait", width: "88px", align: "end", card: "side", cell: (line) => <><Waiting line={line} /><span className="card-only"> wait</span></> },
          { id: "oldest", head: "Oldest", width: "80px", align: "end", card: "line", cell: (line) => <><span className="card-only">oldest </span><Oldest line={line} /></> },
          { id: "rate", head: "Starts", width: "80px", align: "end", from: "sm", cell: (line) => <Rate line={line} /> },
          { id: "last", head: "Last ≈", width: "80px", align: "end", from: "sm", cell: (line) => <LastStarts line={line} /> },
          { id: "held", head: "Held up by", width: "minmax(160px, 2fr)", card: "line", cell: (line) => <HeldBy line={line} /> },
        ]}
        onKey={(key, line) => {
          if (key !== "w") return false;
          navigate(`${path("queues", line.agent)}?why=1`);
          return true;
        }}
        empty={
          all.length === 0
            ? <EmptyState command="muster dev -- python main.py">Nothing waits, because no agent has registered yet. Start one:</EmptyState>
            : <EmptyState>{only === "waiting" ? "Nothing waits." : <>No agent’s name has “<Plain text={q} />” in it.</>}</EmptyState>
        }
      />
    </>
  );
}
