// What an act on a node or a worker would come to, in the plane's words: whom it touches, of whom
// nobody knows, and what follows.
import { count } from "@/look/format";
import { StateMark } from "@/parts/state-mark";
import { Age } from "@/parts/values";
import type { NodeConsequence, ReleaseConsequence } from "./shapes";

export function NodeWould({ would }: { would: NodeConsequence }) {
  const shown = would.workers.slice(0, 12);
  return (
    <div className="flex flex-col gap-2">
      <p className={would.allowed ? undefined : "text-fail"}>{would.text}</p>
      {would.workers_total > 0 && (
        <>
          <p>
            {count(would.workers_total)} {would.workers_total === 1 ? "worker" : "workers"}
            {would.workers_unknown > 0 && <b className="text-wait">, of which {count(would.workers_unknown)} unknown, may still run</b>}
          </p>
          <ul className="max-h-48 overflow-auto border-t border-border">
            {shown.map((worker) => (
              <li key={worker.id} className="flex justify-between gap-3 border-b border-border py-1">
                <span className="truncate">{worker.name}{worker.agent && <span className="text-text-2"> · agent {worker.agent}</span>}</span>
                <StateMark state={worker.state} kind="worker" />
              </li>
            ))}
            {would.workers_total > shown.length && <li className="py-1 text-text-3">and {count(would.workers_total - shown.length)} more</li>}
          </ul>
        </>
      )}
      {would.then && <p className="text-text-2">{would.then}</p>}
    </div>
  );
}

export function ReleaseWould({ would }: { would: ReleaseConsequence }) {
  return (
    <div className="flex flex-col gap-1">
      <p className={would.allowed ? undefined : "text-fail"}>{would.text}</p>
      {would.agent && <p>It is the agent {would.agent}{would.in_flight !== undefined && <>, {count(would.in_flight)} calls in flight</>}.</p>}
      {would.node_heard_at && <p className="text-wait">Its machine was last heard <Age at={would.node_heard_at} />: it is told when it is back.</p>}
    </div>
  );
}
