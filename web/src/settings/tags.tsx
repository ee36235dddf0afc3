// Tags that agents ask for and that need somebody's approval.
import { act } from "@/api/client";
import { queries, useGet } from "@/api/queries";
import { Link, path } from "@/router";
import { ActButton } from "@/parts/act";
import { EmptyState, ErrorPanel, Skeleton } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";

const refresh = () => void queries.invalidateQueries({ predicate: ({ queryKey }) => /\/(tags|nodes|overview)/.test(String(queryKey[0])) });

export default function Tags() {
  const tags = useGet("/api/v1/tags", {}, { refetchInterval: 10_000 });
  if (tags.error && !tags.data) return <ErrorPanel error={tags.error} what="tags" retry={() => void tags.refetch()} />;
  if (!tags.data) return <Skeleton what="tags" />;
  const { agents, need_approval: need } = tags.data;
  if (need.length === 0) {
    return <EmptyState command={'[admission]\ntags_need_approval = ["finance*", "admin"]'}>No tag needs an approval. To have some wait for one, put this into muster.toml:</EmptyState>;
  }
  return (
    <div className="flex flex-col gap-3">
      <p className="text-text-2">An approval is needed for {need.map((tag, index) => <span key={tag}>{index > 0 && ", "}<code>{tag}</code></span>)}.</p>
      {agents.length === 0 && <p>No agent asks for one.</p>}
      <ul>
        {agents.map((agent) => (
          <li key={agent.agent} className="flex flex-wrap items-center gap-x-4 gap-y-1 border-t border-border py-2">
            <Link to={path("agents", agent.agent)} className="font-semibold">{agent.agent}</Link>
            <StateMark state={agent.callable ? "active" : "waiting"} evidence={agent.callable ? "it may be called" : "it is not called until somebody decides"} />
            {agent.pending.length > 0 && <span>asks for <code>{agent.pending.join(" ")}</code></span>}
            {agent.approved.length > 0 && <span className="text-text-2">approved {agent.approved.join(" ")}</span>}
            {agent.rejected.length > 0 && <span className="text-text-2">rejected {agent.rejected.join(" ")}</span>}
            {agent.pending.length > 0 && (
              <span className="ml-auto flex gap-2">
                <Decide agent={agent.agent} tags={agent.pending} verb="Approve" route="/api/v1/tags/{agent}/approve" then="It may be called, and what waits for it is sent." />
                <Decide agent={agent.agent} tags={agent.pending} verb="Reject" route="/api/v1/tags/{agent}/reject" then="It stays registered and is not called." />
              </span>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}

type Route = "/api/v1/tags/{agent}/approve" | "/api/v1/tags/{agent}/reject";

function Decide({ agent, tags, verb, route, then }: { agent: string; tags: string[]; verb: string; route: Route; then: string }) {
  return (
    <ActButton compact act={{
      verb, kind: "ask", scope: "admin", object: agent, danger: verb === "Reject", command: `muster tags ${verb.toLowerCase()} ${agent}`,
      consequence: () => Promise.resolve(`${verb} ${tags.join(", ")} for ${agent}. ${then} The decision holds over new registrations.`),
      run: async (key) => {
        await act("post", route, { path: { agent }, body: { tags }, key });
        refresh();
        return verb === "Reject" ? "rejected" : "approved";
      },
    }} />
  );
}
