// What a worker said last: the end of its output when it has ended, the screen of one that runs.
// It is text: nothing in it is interpreted.
import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { addressOf, send } from "@/api/client";
import type { Problem } from "@/api/problem";
import { ForScope } from "@/login/ask";
import { ErrorPanel } from "@/parts/says";
import { Plain } from "@/parts/plain";
import { Age } from "@/parts/values";
import { endOf, lastLines } from "./exit";
import type { Worker } from "./shapes";

// The document has its text form alone.
type Said = { source: string; text: string | null; at: string | null };

const ROUTE = "/api/v1/fleet/workers/{worker}/output";

export function Output({ worker }: { worker: Worker }) {
  if (worker.exit) return <LastWords worker={worker} />;
  return worker.ended_at || worker.state === "queued" ? null : <Screen id={worker.id} />;
}

function LastWords({ worker }: { worker: Worker }) {
  const [all, setAll] = useState(false);
  const exit = worker.exit;
  if (!exit) return null;
  const last = lastLines(exit.output);
  return (
    <section aria-labelledby="last" className="flex flex-col gap-1">
      <h2 id="last">{worker.ended_at ? "How it ended" : "How its process ended last"}: {endOf(worker)} {exit.at && <span className="font-normal text-text-3"><Age at={exit.at} /></span>}</h2>
      {exit.reason && <p className="text-text-2">{exit.reason}</p>}
      {exit.output === "" ? <p className="text-text-2">It said nothing{exit.reason ? "" : ", or nobody heard it"}.</p> : (
        <>
          <pre className="max-h-96 overflow-auto rounded-sm border border-border bg-sunken p-2" tabIndex={0} aria-label="Last output"><Plain text={all ? exit.output : last.text} lines /></pre>
          {last.more > 0 && <button type="button" className="self-start text-accent underline underline-offset-2" onClick={() => setAll(!all)}>{all ? "only the end" : `${last.more} lines above`}</button>}
        </>
      )}
    </section>
  );
}

function Screen({ id }: { id: string }) {
  const [open, setOpen] = useState(false);
  return (
    <section aria-labelledby="screen" className="flex flex-col items-start gap-2">
      <h2 id="screen" className="visually-hidden">Screen</h2>
      {open
        ? <ForScope scope="operate" what="Looking at what a worker says"><Said id={id} /></ForScope>
        : <button type="button" className="button" onClick={() => setOpen(true)}>Look at its screen</button>}
    </section>
  );
}

function Said({ id }: { id: string }) {
  const said = useQuery<Said, Problem>({
    queryKey: [ROUTE, id],
    queryFn: async ({ signal }) => {
      const answer = await send(addressOf(ROUTE, { path: { worker: id } }), { headers: { accept: "application/json" }, signal });
      return (await answer.json()) as Said;
    },
  });
  const again = () => void said.refetch();
  return (
    <>
      <button type="button" className="button" autoFocus onClick={again}>Look again</button>
      {said.error && <ErrorPanel error={said.error} what="what it says" retry={again} />}
      {said.data && (
        <>
          <p className="text-xs text-text-3">its {said.data.source} {said.data.at && <Age at={said.data.at} />}</p>
          <pre className="max-h-96 w-full overflow-auto rounded-sm border border-border bg-sunken p-2" tabIndex={0} aria-label="Screen"><Plain text={said.data.text || "nothing"} lines /></pre>
        </>
      )}
    </>
  );
}
