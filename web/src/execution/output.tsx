// What came of an execution: its result, or what the agent said about its failure, what came too
// late, and the usage that it reported. What is not there is said with its reason.
import { count } from "@/look/format";
import { Plain } from "@/parts/plain";
import { PayloadView } from "./payload-view";
import { type ExecutionItem, isOpen } from "./shapes";
import { UsageTable } from "./usage";

export function OutputTab({ execution }: { execution: ExecutionItem }) {
  const { execution_id: id, state } = execution;
  const open = isOpen(state);
  const failed = execution.error !== undefined || execution.error_category !== undefined;
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      {failed && (
        <section aria-label="Error" className="border-b border-l-2 border-border border-l-fail bg-tint-fail px-3 py-2">
          {execution.error_category && <code className="text-fail"><Plain text={execution.error_category} /></code>}
          {execution.status_reason && execution.status_reason !== execution.error_category && <span className="ml-2 text-text-2"><Plain text={execution.status_reason} /></span>}
          {execution.error ? <pre className="max-h-48 overflow-auto break-words whitespace-pre-wrap"><Plain text={execution.error} lines /></pre> : <p className="text-text-2">The agent gave no text.</p>}
        </section>
      )}
      {execution.result_size !== undefined || state === "succeeded"
        ? <PayloadView id={id} kind="result" name="Result" settled={!open} fill none={noneOf(execution, open)} />
        : <p className="p-3 text-text-2">{noneOf(execution, open)}</p>}
      {failed && state === "failed" && (execution.error_details_size === undefined
        ? <p className="p-3 text-text-2">The agent gave no details.</p>
        : <PayloadView id={id} kind="error_details" name="Error details" settled none="The agent gave no details." />)}
      {execution.late_outcome !== undefined && (
        <>
          <p className="border-t border-border px-3 py-1 text-wait">
            An outcome came after the end: <Plain text={execution.late_outcome} />. It is kept, not applied.
          </p>
          {execution.late_size === undefined
            ? <p className="p-3 text-text-2">It came without a value.</p>
            : <PayloadView id={id} kind="late" name="Late outcome" settled none="It came without a value." />}
        </>
      )}
      {execution.usage !== undefined && execution.usage !== null && <UsageTable usage={execution.usage} />}
    </div>
  );
}

function noneOf(execution: ExecutionItem, open: boolean): string {
  if (open) {
    return execution.started_at === undefined ? "No result yet: it was not sent to its agent." : "No result yet: it has not ended.";
  }
  if (execution.attempt === 0 && execution.kind !== "observed" && !execution.replay_hit) return "No result: it ended before it was sent.";
  if (execution.state === "succeeded") return "It ended well without a value.";
  return execution.kind === "observed" ? "It was observed, not sent: its agent reported no value." : `No result: it ended as ${execution.state}.`;
}

/** A short form for the head: `1,204 tokens, $0.0123`. */
export function usageText(usage: unknown): string | undefined {
  if (!usage || typeof usage !== "object") return undefined;
  const said = usage as Record<string, unknown>;
  const tokens = typeof said.total_tokens === "number" ? `${count(said.total_tokens)} tokens` : undefined;
  const cost = typeof said.total_cost_usd === "number" ? `$${said.total_cost_usd}` : undefined;
  return [tokens, cost].filter(Boolean).join(", ") || undefined;
}
