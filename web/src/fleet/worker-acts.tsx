// What can be done to a worker: start it again, end it. Says first what would be told, to whom, and
// what ends with it.
import { queries } from "@/api/queries";
import { ActButton } from "@/parts/act";
import { releaseWorker, restartWorker, wouldRelease, wouldRestart } from "./calls";
import { ReleaseWould } from "./consequence";
import type { Worker } from "./shapes";

const RESTARTED = {
  runs: "it runs again",
  ended: "it was started again and ended at once: its exit says how",
  "under way": "its machine was asked and has not answered yet",
};

const again = () => queries.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).startsWith("/api/v1/fleet") });

export function WorkerActs({ worker }: { worker: Worker }) {
  const over = worker.ended_at ? "it has ended" : undefined;
  const leaving = over ?? (worker.release ? "its end is under way" : undefined);
  const queued = worker.state === "queued";
  return (
    <>
      <ActButton act={{
        verb: "Restart", kind: "ask", scope: "operate", command: `muster workers restart ${worker.id}`,
        disabled: leaving ?? (queued ? "it waits for a place and has no process yet" : undefined),
        consequence: async () => <ReleaseWould would={await wouldRestart(worker.id)} />,
        run: async (key) => {
          const became = await restartWorker(worker.id, key);
          await again();
          return RESTARTED[became];
        },
      }} />
      <ActButton act={{
        verb: queued ? "Take back" : "Release", kind: "ask", scope: "operate", danger: true, command: `muster release ${worker.id}`,
        disabled: leaving,
        consequence: async () => <ReleaseWould would={await wouldRelease(worker.id)} />,
        run: async (key) => {
          const ended = await releaseWorker(worker.id, key);
          await again();
          return ended ? "it has ended" : "its end is under way: its machine is told when it is back";
        },
      }} />
    </>
  );
}
