// What can be done to a worker: end it. Says first what would be told, to whom, and what ends with it.
import { queries } from "@/api/queries";
import { ActButton } from "@/parts/act";
import { releaseWorker, wouldRelease } from "./calls";
import { ReleaseWould } from "./consequence";
import type { Worker } from "./shapes";

export function WorkerActs({ worker }: { worker: Worker }) {
  const over = worker.ended_at ? "it has ended" : undefined;
  const queued = worker.state === "queued";
  return (
    <ActButton act={{
      verb: queued ? "Take back" : "Release", kind: "ask", scope: "operate", danger: true, command: `muster release ${worker.id}`,
      disabled: over ?? (worker.release ? "its end is under way" : undefined),
      consequence: async () => <ReleaseWould would={await wouldRelease(worker.id)} />,
      run: async (key) => {
        const ended = await releaseWorker(worker.id, key);
        await queries.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).startsWith("/api/v1/fleet") });
        return ended ? "it has ended" : "its end is under way: its machine is told when it is back";
      },
    }} />
  );
}
