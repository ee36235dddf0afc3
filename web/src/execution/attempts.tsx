// How often an execution was sent, to which instance, and how that went; dials that failed before
// a byte left stand between as dots. An attempt's secret is never here: the plane does not send it.
import { useMemo } from "react";
import { duration } from "@/look/format";
import { Plain } from "@/parts/plain";
import { ErrorPanel, Skeleton } from "@/parts/says";
import { Age, Id, Time, Unknown, msOf } from "@/parts/values";
import { useAttempts } from "./data";
import type { Attempt, FailedDial } from "./shapes";

type Entry = { is: "attempt"; at: number; attempt: Attempt } | { is: "dials"; at: number; dials: FailedDial[] };

/** Attempts and the failed dials between them, in order of time. */
export function inOrder(attempts: readonly Attempt[], dials: readonly FailedDial[]): Entry[] {
  const entries: Entry[] = attempts.map((attempt) => ({ is: "attempt", at: msOf(attempt.sent_at) ?? 0, attempt }));
  entries.push(...dials.map((dial): Entry => ({ is: "dials", at: msOf(dial.at) ?? 0, dials: [dial] })));
  entries.sort((a, b) => a.at - b.at || (a.is === "dials" ? -1 : 1));
  return entries.reduce<Entry[]>((merged, entry) => {
    const last = merged.at(-1);
    if (entry.is === "dials" && last?.is === "dials") last.dials.push(...entry.dials);
    else merged.push(entry);
    return merged;
  }, []);
}

export function AttemptsTab({ id, why }: { id: string; why: string }) {
  const { data, error, refetch } = useAttempts(id);
  const entries = useMemo(() => inOrder(data?.attempts ?? [], data?.dials ?? []), [data]);
  if (!data) return error ? <ErrorPanel error={error} what="attempts" retry={() => void refetch()} /> : <Skeleton rows={3} what="attempts" />;
  if (entries.length === 0) return <p className="p-3 text-text-2">{why}</p>;
  return (
    <ol className="flex flex-col" aria-label="Attempts">
      {entries.map((entry) => (entry.is === "attempt"
        ? <AttemptLine key={`a${entry.attempt.n}`} attempt={entry.attempt} />
        : <DialsLine key={`d${entry.at}`} dials={entry.dials} />))}
    </ol>
  );
}

function AttemptLine({ attempt }: { attempt: Attempt }) {
  return (
    <li className="grid grid-cols-[2rem_1fr] gap-x-2 border-b border-border px-3 py-2">
      <span className="text-base font-semibold" title={`attempt ${attempt.n}`}>{attempt.n}</span>
      <div className="flex min-w-0 flex-col gap-1">
        <p className="flex flex-wrap items-center gap-x-3">
          <span>to <Id id={attempt.instance_id} /></span>
          <span>{attempt.outcome === undefined || attempt.outcome === null ? <span className="text-run">no end yet</span> : <Plain text={attempt.outcome.replaceAll("_", " ")} />}</span>
        </p>
        <dl className="grid grid-cols-[auto_auto_1fr] gap-x-3 text-text-2">
          <Step name="sent" at={attempt.sent_at} />
          <Step name="accepted" at={attempt.accepted_at} from={attempt.sent_at} none={attempt.ended_at ? "ended without" : "not yet"} />
          <Step name="ended" at={attempt.ended_at} from={attempt.sent_at} none="not yet" />
        </dl>
        {attempt.evidence && <pre className="max-h-40 overflow-auto break-words whitespace-pre-wrap"><Plain text={attempt.evidence} lines /></pre>}
        {attempt.evidence_hidden && <p className="text-text-3">this key may not read the evidence</p>}
      </div>
    </li>
  );
}

function Step({ name, at, from, none }: { name: string; at?: string; from?: string; none?: string }) {
  const [start, end] = [msOf(from), msOf(at)];
  return (
    <>
      <dt className="text-text-3">{name}</dt>
      <dd>{at ? <Time at={at} /> : <Unknown reason={none} />}</dd>
      <dd>{at === undefined ? <span className="text-text-3">{none}</span> : start !== null && end !== null ? `after ${duration(end - start)}` : <Age at={at} />}</dd>
    </>
  );
}

/** Dots are the dials, at most so many; the number is written. */
const DOTS_MAX = 24;

function DialsLine({ dials }: { dials: FailedDial[] }) {
  const first = dials[0];
  const last = dials.at(-1);
  return (
    <li className="grid grid-cols-[2rem_1fr] gap-x-2 border-b border-border px-3 py-1 text-text-2">
      <span aria-hidden className="text-wait">↻</span>
      <div className="min-w-0">
        <p className="flex flex-wrap items-center gap-x-2">
          <span aria-hidden className="tracking-widest text-wait">{"•".repeat(Math.min(dials.length, DOTS_MAX))}{dials.length > DOTS_MAX && "…"}</span>
          <span>{dials.length === 1 ? "a dial failed" : `${dials.length} dials failed`}: no byte left, so nothing ran</span>
          {first && <Age at={first.at} />}
        </p>
        {last?.text && <p className="break-words text-text-3"><Plain text={last.text} /></p>}
      </div>
    </li>
  );
}
