// Webhooks that are on their way and those that were given up, with why, and sending them again.
import { act } from "@/api/client";
import { queries, useGet } from "@/api/queries";
import { count } from "@/look/format";
import { Link, path } from "@/router";
import { ActButton } from "@/parts/act";
import { Plain } from "@/parts/plain";
import { ErrorPanel, Skeleton } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";
import { Age, Id } from "@/parts/values";

const LIMIT = 50;
const refresh = () => void queries.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).startsWith("/api/v1/webhooks") });

export function Outbox() {
  const open = useGet("/api/v1/webhooks", { query: { state: "pending", limit: LIMIT } }, { refetchInterval: 10_000 });
  const dead = useGet("/api/v1/webhooks", { query: { state: "dead", limit: LIMIT } }, { refetchInterval: 10_000 });
  if (dead.isPending) return <Skeleton rows={2} what="the outbox" />;
  if (dead.error && !dead.data) return <ErrorPanel error={dead.error} what="the outbox" retry={() => void dead.refetch()} />;
  const messages = dead.data?.webhooks ?? [];
  const many = (page: { count: number; next_cursor?: string | null } | undefined) => (page ? `${page.next_cursor ? "≥ " : ""}${count(page.count)}` : "?");
  return (
    <section aria-labelledby="outbox" className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-3">
        <h2 id="outbox">Outbox</h2>
        <span className="text-text-2">{many(open.data)} on their way, {many(dead.data)} dead letters</span>
        {messages.length > 0 && (
          <ActButton act={{
            verb: "Redrive all", kind: "ask", scope: "operate",
            consequence: () => Promise.resolve(`${many(dead.data)} messages that were given up are sent again, in the order of each execution. Receivers may get what they have already: each carries its id.`),
            run: async (key) => {
              const { redriven } = await act("post", "/api/v1/webhooks/redrive", { body: {}, key });
              refresh();
              return `${count(redriven)} are sent again`;
            },
          }} />
        )}
      </div>
      {messages.length > 0 && (
        <ul className="border-t border-border">
          {messages.map((message) => (
            <li key={message.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-border py-1">
              <StateMark state="dead" evidence={message.last_error ?? undefined} />
              <code>{message.type}</code>
              <Link to={path("executions", message.execution_id)} className="underline underline-offset-2"><Id id={message.execution_id} plain /></Link>
              <span className="min-w-0 text-text-2"><Plain text={message.last_error ?? (message.last_status ? `HTTP ${message.last_status}` : "no reason was kept")} /></span>
              <span className="text-text-3">{count(message.tries)} tries, given up <Age at={message.dead_at} /></span>
              <span className="ml-auto">
                <ActButton compact act={{
                  verb: "Redrive", kind: "ask", scope: "operate", object: message.type,
                  consequence: () => Promise.resolve(`It is sent again to ${message.target ?? "its receiver"}, under its own id.`),
                  run: async (key) => {
                    await act("post", "/api/v1/webhooks/{id}/redrive", { path: { id: message.id }, key });
                    refresh();
                    return "sent again";
                  },
                }} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
