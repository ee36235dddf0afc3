// "Use input of…": the latest calls of a function, to begin from what one of them was given.
import { useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { addressOf, send } from "@/api/client";
import { Problem } from "@/api/problem";
import { readPayload, textOf } from "@/execution/payload";
import type { ExecutionItem } from "@/execution/shapes";
import { bytes } from "@/look/format";
import { Popover } from "@/parts/layer";
import { ErrorPanel, Skeleton } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";
import { Age, Id } from "@/parts/values";

/** A larger input is not edited in a page. */
const INPUT_MAX = 1024 * 1024;

export function UseInput({ agent, fn, take }: { agent: string; fn: string; take(text: string): void }) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  return (
    <>
      <button ref={button} type="button" className="button" aria-haspopup="dialog" aria-expanded={open} onClick={() => setOpen(!open)}>Use input of…</button>
      {open && (
        <Popover anchor={button} close={() => setOpen(false)} label="Use the input of an earlier call" className="w-[min(460px,calc(100vw-16px))]">
          <Calls agent={agent} fn={fn} take={(text) => {
            take(text);
            setOpen(false);
          }} />
        </Popover>
      )}
    </>
  );
}

function Calls({ agent, fn, take }: { agent: string; fn: string; take(text: string): void }) {
  const [error, setError] = useState<Problem>();
  const list = useQuery<{ executions: ExecutionItem[] }, Problem>({
    queryKey: ["inputs of", agent, fn],
    queryFn: async ({ signal }) => {
      const answer = await send(addressOf("/api/v1/executions", { query: { agent, function: fn, limit: 12 } }), { signal });
      return (await answer.json()) as { executions: ExecutionItem[] };
    },
    staleTime: 2_000,
  });
  const choose = async (id: string) => {
    try {
      const part = await readPayload(id, "input", 0, INPUT_MAX);
      if (part.is === "gone") throw new Problem("not_found", part.says, 410);
      if (part.is === "here" && part.total > INPUT_MAX) throw new Problem("too_large", `${bytes(part.total)} is too much to edit here`, 0);
      take(part.is === "here" && part.total > 0 ? textOf(part.bytes, true).text : "{}");
    } catch (failed) {
      setError(Problem.of(failed));
    }
  };
  if (!list.data) return list.error ? <ErrorPanel error={list.error} what="earlier calls" /> : <Skeleton rows={3} what="earlier calls" />;
  return (
    <div className="flex flex-col gap-1">
      {error && <ErrorPanel error={error} what="its input" />}
      {list.data.executions.length === 0 && <p className="text-text-2">It was not called yet.</p>}
      <ul className="max-h-72 overflow-auto">
        {list.data.executions.map((each, index) => (
          <li key={each.execution_id}>
            <button type="button" data-first={index === 0 || undefined} className="flex min-h-8 w-full items-center gap-3 rounded-sm px-1 text-left hover:bg-hover" onClick={() => void choose(each.execution_id)}>
              <StateMark state={each.state} />
              <span className="flex-1"><Id id={each.execution_id} plain /></span>
              <span className="text-text-2">{bytes(each.input_size)}</span>
              <span className="w-20 text-right text-text-2"><Age at={each.created_at} /></span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
