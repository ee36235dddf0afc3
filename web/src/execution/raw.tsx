// The row of an execution as the plane writes it, and the lines that make the same call again.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { addressOf, send } from "@/api/client";
import { Problem } from "@/api/problem";
import { CommandLine, ErrorPanel, Skeleton } from "@/parts/says";
import { useCopy } from "@/parts/values";
import { flag, quoted } from "./acts/wish";
import { JsonTree } from "./json-tree";
import { sourceOf, tokensOf } from "./json/tokens";
import { WHOLE_BYTES, readPayload, textOf } from "./payload";
import type { ExecutionItem } from "./shapes";

export function RawTab({ execution }: { execution: ExecutionItem }) {
  const id = execution.execution_id;
  const { data, error, refetch } = useQuery<string, Problem>({
    queryKey: ["raw", id],
    queryFn: async ({ signal }) => {
      const answer = await send(addressOf("/api/v1/why/{id}", { path: { id }, query: { kind: "execution" } }), { signal });
      const tokens = tokensOf(await answer.text());
      const row = tokens.nodes.find((node) => node.depth === 1 && tokens.text.slice(node.keyStart, node.keyEnd) === '"execution"');
      return row ? sourceOf(tokens, row) : tokens.text;
    },
  });
  const tokens = useMemo(() => (data === undefined ? undefined : tokensOf(data)), [data]);
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <Again execution={execution} />
      {tokens ? <JsonTree tokens={tokens} label="The execution as the plane writes it" fill />
        : error ? <ErrorPanel error={error} what="the execution" retry={() => void refetch()} /> : <Skeleton rows={6} what="the execution" />}
    </div>
  );
}

/** The same call again, as a command. The input is read when somebody asks for it. */
function Again({ execution }: { execution: ExecutionItem }) {
  const id = execution.execution_id;
  const [says, setSays] = useState<string>();
  const [copied, copy] = useCopy();
  const large = execution.input_size > WHOLE_BYTES;
  const make = async (how: "curl" | "muster") => {
    try {
      const part = large ? undefined : await readPayload(id, "input", 0, WHOLE_BYTES);
      const input = part?.is === "here" && part.total > 0 ? textOf(part.bytes, true).text : part?.is === "none" ? "{}" : undefined;
      setSays(part?.is === "gone" ? part.says : undefined);
      copy(how === "curl" ? curlOf(execution, input, window.location.origin) : musterOf(execution, input));
    } catch (error) {
      setSays(Problem.of(error).message);
    }
  };
  return (
    <section aria-label="The same call again" className="flex flex-col gap-2 border-b border-border px-3 py-2">
      <p className="flex flex-wrap items-center gap-3">
        <button type="button" className="button" onClick={() => void make("curl")}>Copy as curl</button>
        <button type="button" className="button" onClick={() => void make("muster")}>Copy as muster</button>
        <span role="status" className="text-text-2">{copied ? "copied, with its input" : (says ?? (large ? "the input is large: download it beside the command" : "the same call again, with the input that is stored"))}</span>
      </p>
      <CommandLine command={`muster executions show ${id}`} />
    </section>
  );
}

/** `input` absent: it comes from a file with the name that a download gives it. */
export function curlOf(execution: Pick<ExecutionItem, "execution_id" | "target">, input: string | undefined, origin: string): string {
  const address = `${origin}/api/v1/execute/async/${encodeURIComponent(execution.target)}`;
  const body = input === undefined ? `"{\\"input\\":$(cat ${execution.execution_id}-input.json)}"` : quoted(`{"input":${input}}`);
  return `curl -s ${address} -H 'content-type: application/json' -d ${body}`;
}

export function musterOf(execution: Pick<ExecutionItem, "execution_id" | "target">, input: string | undefined): string {
  return `muster call ${execution.target} ${input === undefined ? `--input @${execution.execution_id}-input.json` : flag("--input", input)}`;
}
