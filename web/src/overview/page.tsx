// Does anything need me? In this order: who needs a person, what is held up, does work end as fast
// as it starts, what fails, are agents and nodes there. All of it is one answer of the plane.
import { useGet } from "@/api/queries";
import type { Overview } from "@/api/shapes";
import { useAgeOf } from "@/live/clock";
import { useOfflineSince } from "@/live/stream";
import { ago, count, rfc3339 } from "@/look/format";
import { AsOf, CommandLine, EmptyState, ErrorPanel, Panel, Skeleton } from "@/parts/says";
import { msOf } from "@/parts/values";
import { PageHead, useTitle } from "@/shell/crumbs";
import { Failed, Flow, HeldUp, Needs, There } from "./sections";

export default function OverviewPage() {
  const { data, error, isPending, dataUpdatedAt, refetch } = useGet("/api/v1/overview", {}, { staleTime: 60_000 });
  const many = data?.needs_total ?? 0;
  const offline = useOfflineSince();
  useTitle(many > 0 ? `${count(many)} ${many === 1 ? "needs" : "need"} you` : "Overview");
  const head = (
    <PageHead crumbs={<><h1 className="font-semibold">Overview</h1>{data && (error || offline !== undefined) && <AsOf at={msOf(data.as_of) ?? dataUpdatedAt} why={error?.message ?? "the plane does not answer"} />}</>} />
  );
  if (!data) {
    return <>{head}{isPending ? <Skeleton what="the overview" rows={10} /> : <ErrorPanel error={error} what="the overview" retry={() => void refetch()} />}</>;
  }
  const never = data.agents?.total === 0 && data.flow?.open === 0 && many === 0;
  return (
    <div className="flex max-w-[1600px] flex-col gap-5">
      {head}
      <Panel what="what needs you">{never ? <Begin /> : many > 0 ? <Needs overview={data} /> : <Calm overview={data} />}</Panel>
      {!never && (
        <>
          <Panel what="what is held up"><HeldUp held={data.held} /></Panel>
          <Panel what="the flow"><Flow flow={data.flow} /></Panel>
          <Panel what="what failed"><Failed failed={data.failed} /></Panel>
          <Panel what="agents and nodes"><There overview={data} /></Panel>
        </>
      )}
    </div>
  );
}

/** An untroubled plane is one sentence. */
function Calm({ overview: { flow, as_of } }: { overview: Overview }) {
  const at = msOf(as_of);
  const now = useAgeOf(at);
  const checked = at === null ? "" : `, checked ${ago(now - at)}`;
  const open = flow.open === 0 ? "Nothing is open" : `${count(flow.open)} open`;
  const oldest = flow.oldest_wait_ms === null ? "" : `, oldest wait ${waited(flow.oldest_wait_ms)}`;
  // One text: what grows in it moves nothing that stands beside it.
  return (
    <p className="text-lg" data-calm>
      Nothing needs you. <span className="text-text-2" title={at === null ? undefined : rfc3339(at)}>
        {`${open}${oldest}${checked}.`}
      </span>
    </p>
  );
}

const waited = (ms: number) => (ms < 10_000 ? `${(Math.floor(ms / 100) / 10).toFixed(1)} s` : ms < 60_000 ? `${Math.floor(ms / 1000)} s` : `${Math.floor(ms / 60_000)} m`);

function Begin() {
  return (
    <EmptyState>
      <span className="flex flex-col items-start gap-3">
        <span>No agent has registered yet. Start one beside this plane:</span>
        <CommandLine command="muster dev -- python main.py" />
        <span>then call a function of it, and watch it here:</span>
        <CommandLine command="muster call AGENT.FN --input '{}'" />
        <span>An agent that runs elsewhere finds this plane by <code>AGENTFIELD_SERVER={location.origin}</code>.</span>
      </span>
    </EmptyState>
  );
}
