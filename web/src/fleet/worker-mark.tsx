// A worker's state as it is drawn: an exit with 0 is no failure, and one that was lost may still run.
import { StateMark } from "@/parts/state-mark";
import type { Worker } from "./shapes";

export function WorkerMark({ worker }: { worker: Pick<Worker, "state" | "evidence" | "exit"> }) {
  const well = worker.state === "exited" && worker.exit?.code === 0;
  return <StateMark state={well ? "exited_0" : worker.state} kind="worker" evidence={worker.evidence} doubtful={worker.state === "lost"} />;
}
