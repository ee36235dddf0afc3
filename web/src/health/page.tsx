// Whether the plane itself is well: verdict, late duties, store and disk, who decides, what is
// stuck. What works in order is one line each.
import { useGet } from "@/api/queries";
import { useLive, useLiveState } from "@/live/stream";
import { Plain } from "@/parts/plain";
import { AsOf, ErrorPanel, Panel, Skeleton } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";
import { Age, Took } from "@/parts/values";
import { PageHead, useTitle } from "@/shell/crumbs";
import { Circuits } from "./circuits";
import { Decider } from "./decider";
import { Duties } from "./duty-table";
import { Hold } from "./hold";
import { Outbox } from "./outbox";
import { Quarantine } from "./quarantine";
import { Store } from "./store";

const REFRESH_MS = 5_000;
const nothing = () => undefined;

export default function HealthPage() {
  const health = useGet("/api/v1/health", {}, { refetchInterval: REFRESH_MS });
  const known = health.data;
  useLive(["summary"], nothing);
  const well = known?.status === "ok";
  const { live } = useLiveState();
  // A plane that does not answer is not known to be well, whatever it said before.
  const silent = live.state === "offline" || health.error?.offline === true;
  useTitle("Health", known ? (silent ? "unknown" : well ? "online" : known.status === "draining" ? "draining" : "degraded") : undefined);
  return (
    <>
      <PageHead crumbs={<h1>Health</h1>} />
      {health.isPending && <Skeleton what="the plane's health" />}
      {health.error && !known && <ErrorPanel error={health.error} what="health" retry={() => void health.refetch()} />}
      {known && (
        <div className="flex flex-col gap-6">
          <div className="flex flex-col gap-1">
            {/* What the request did not get is not known: not "well", and not "down". */}
            {(health.error || silent) && <AsOf at={health.dataUpdatedAt} />}
            <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-base">
              <StateMark state={silent ? "unknown" : well ? "online" : known.status} evidence={silent ? `it said ${known.status} when it answered last` : `the plane says ${known.status}`} />
              <span>{silent ? "It does not answer now: what stands here is what it said last." : well ? "It answers, it commits, every duty is on time." : "Not all is as it should be."}</span>
              <span className="text-text-2">version {known.version}, up <Took from={known.started_at} />, started <Age at={known.started_at} /></span>
            </p>
            {(known.problems?.length ?? 0) > 0 && (
              <ul className="border-l-2 border-wait bg-tint-wait p-3">
                {known.problems.map((problem) => <li key={problem}><Plain text={problem} /></li>)}
              </ul>
            )}
          </div>
          <Panel what="the hold"><Hold /></Panel>
          <Panel what="duties"><Duties duties={known.duties} /></Panel>
          <div className="grid gap-6 lg:grid-cols-2">
            <Panel what="the store"><Store store={known.store} /></Panel>
            <Panel what="the decider"><Decider health={known} /></Panel>
          </div>
          <Panel what="the outbox"><Outbox /></Panel>
          <Panel what="the quarantine"><Quarantine /></Panel>
          <Panel what="LLM circuits"><Circuits /></Panel>
        </div>
      )}
    </>
  );
}
