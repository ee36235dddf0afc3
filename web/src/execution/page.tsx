// One execution by its id: goes to its run with the step selected; shows the panel alone when the
// address says so, or when its run is not there.
import { useEffect, useState } from "react";
import { useGet } from "@/api/queries";
import { Skeleton } from "@/parts/says";
import { Id } from "@/parts/values";
import { Link, navigate, path, useQuery } from "@/router";
import { PageHead, useTitle } from "@/shell/crumbs";
import { useExecution } from "./data";
import { ExecutionPanel } from "./panel";

export default function Page({ id }: { id: string }) {
  const { execution, error } = useExecution(id);
  const [alone] = useQuery("alone");
  const [tab, setTab] = useQuery("tab");
  const run = execution?.run_id;
  const found = useGet("/api/v1/runs/{run}", { path: { run: run ?? "" } }, { enabled: run !== undefined && !alone });
  useTitle(execution?.target ?? "Execution", execution?.state);
  useEffect(() => {
    if (!run || !found.isSuccess || alone) return;
    const query = new URLSearchParams({ step: id, ...(tab ? { tab } : {}) });
    navigate(`${path("runs", run)}?${query}`, { replace: true });
  }, [run, found.isSuccess, alone, id, tab]);
  // Once shown alone it stays so: asking again after a failure is the panel's, in its place.
  const [failed, setFailed] = useState(false);
  if (!failed && (error !== null || found.isError)) setFailed(true);
  const shown = alone !== "" || failed;
  return (
    <>
      <PageHead crumbs={<><Link to="/runs" className="text-text-2">Runs</Link><span aria-hidden className="text-text-3">/</span><h1>Execution <Id id={id} /></h1></>} />
      {shown ? (
        <div className="flex h-[calc(100dvh-160px)] min-h-80 max-w-5xl flex-col border border-border sm:h-[calc(100dvh-96px)]">
          <ExecutionPanel id={id} tab={tab || undefined} setTab={setTab} alone />
        </div>
      ) : <Skeleton rows={10} what={`execution ${id}`} />}
    </>
  );
}
