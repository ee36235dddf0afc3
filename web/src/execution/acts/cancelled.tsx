// The receipt of a cancel: what ended, and then what the agents answered who had it. Their answers
// come after the act: they are asked for while the receipt stands and one is missing.
import { useQuery } from "@tanstack/react-query";
import { get } from "@/api/client";
import type { Problem } from "@/api/problem";
import { count } from "@/look/format";
import { type Receipts, receiptWords, tallied } from "@/runs/cancelled";
import type { Cancelled } from "../shapes";

/** The plane answers for so many steps by id. */
const IDS_MAX = 500;
const AGAIN_MS = 700;

/** What is known right after: that agents are told, not yet what they did. */
export function cancelledWords({ cancelled, told }: Pick<Cancelled, "cancelled" | "told">, receipts?: Receipts): string {
  const ended = `ended ${count(cancelled.length)}`;
  const words = receipts && receipts.told + receipts.not_told > 0 ? receiptWords(receipts) : "";
  if (words) return `${ended}: ${words}`;
  return told > 0 ? `${ended}, telling ${count(told)} ${told === 1 ? "agent" : "agents"}: their code may still run` : ended;
}

export function CancelReceipt({ done, run }: { done: Cancelled; run: string }) {
  const ids = done.cancelled.slice(0, IDS_MAX);
  const { data } = useQuery<Receipts, Problem>({
    queryKey: ["receipts", run, ...ids],
    enabled: done.told > 0 && ids.length > 0,
    queryFn: async ({ signal }) => {
      const answer = await get("/api/v1/runs/{run}/steps", { path: { run }, query: { view: "columns", ids: ids.join(",") }, signal });
      const receipts = tallied("columns" in answer ? answer.columns.receipt : []);
      return done.cancelled.length > ids.length ? { ...receipts, partial: true } : receipts;
    },
    refetchInterval: (query) => (query.state.data === undefined || query.state.data.unanswered > 0 ? AGAIN_MS : false),
  });
  return <span data-receipts>{cancelledWords(done, data)}</span>;
}
