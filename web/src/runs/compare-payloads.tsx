// The payloads of one pair, compared line by line: input, output, error. Read when the pair is opened.
import { useQuery as useCached } from "@tanstack/react-query";
import { useGet } from "@/api/queries";
import { TextDiff } from "@/parts/diff";
import { ErrorPanel, Skeleton } from "@/parts/says";
import { Link } from "@/router";
import { readWhole } from "./equality";
import { type Step, isOpen } from "./forest";
import { type Pair, isReplay } from "./pairing";
import { FunctionName } from "./row-cell";

const MOST = 1024 * 1024;

export function ComparePayloads({ pair, close }: { pair: Pair; close(): void }) {
  const { a, b } = pair;
  return (
    <section aria-label="Payloads of the pair">
      <header className="sticky top-0 z-10 flex flex-wrap items-center gap-3 border-b border-border bg-surface px-2 py-1">
        <b className="font-semibold"><FunctionName name={pair.name} /></b>
        {a && <Link to={`/executions/${a.id}`} className="text-accent">open in A</Link>}
        {b && <Link to={`/executions/${b.id}`} className="text-accent">open in B</Link>}
        <button type="button" className="ml-auto text-accent" onClick={close} aria-label="Close the payloads">Close</button>
      </header>
      {a && b && isReplay(a, b) && <p className="px-2 pt-2 text-text-2">One took the other over: the same call, and the same result.</p>}
      <h2 className="px-2 pt-2 text-text-3">Input</h2>
      <PayloadDiff kind="input" a={a} b={b} label="Input" />
      <h2 className="px-2 pt-2 text-text-3">Output</h2>
      <PayloadDiff kind="result" a={a} b={b} label="Output" />
      {(a?.category || b?.category) && (
        <>
          <h2 className="px-2 pt-2 text-text-3">Error</h2>
          <ErrorDiff a={a} b={b} />
        </>
      )}
    </section>
  );
}

function PayloadDiff({ kind, a, b, label }: { kind: "input" | "result"; a: Step | null; b: Step | null; label: string }) {
  const left = usePayloadText(a, kind);
  const right = usePayloadText(b, kind);
  if (left.isPending || right.isPending) return <Skeleton rows={2} what={label} />;
  const error = left.error ?? right.error;
  if (error) return <ErrorPanel error={error} what={label} retry={() => { void left.refetch(); void right.refetch(); }} />;
  return <TextDiff label={label} a={{ name: "A", ...sideOf(a, left.data) }} b={{ name: "B", ...sideOf(b, right.data) }} />;
}

type Read = Awaited<ReturnType<typeof readWhole>>;

function usePayloadText(step: Step | null, kind: "input" | "result") {
  // What has not ended may get a result yet: its end is a part of the key.
  return useCached<Read | null>({
    queryKey: ["payload-text", step?.id ?? null, kind, step?.ended ?? null],
    queryFn: ({ signal }) => (step && (kind === "input" || step.state === "succeeded") ? readWhole(step.id, kind, MOST, signal) : null),
    staleTime: 60_000,
  });
}

function sideOf(step: Step | null, read: Read | null | undefined): { text: string | null; none?: string } {
  if (!step) return { text: null, none: "the step is not in this run" };
  if (!read || read.is === "none") return { text: null, none: isOpen(step) ? "it has not ended" : "there is none" };
  if (read.is === "large") return { text: null, none: "it is larger than 1 MiB: open the step and download it" };
  if (read.is === "unknown") return { text: null, none: "it could not be read, or is no text" };
  return { text: read.text };
}

function ErrorDiff({ a, b }: { a: Step | null; b: Step | null }) {
  return <TextDiff label="Error" a={{ name: "A", ...useError(a) }} b={{ name: "B", ...useError(b) }} />;
}

function useError(step: Step | null): { text: string | null; none?: string } {
  const { data, isPending } = useGet("/api/v1/executions/{id}", { path: { id: step?.id ?? "" } }, { enabled: step?.category != null });
  const error = (data as { error?: unknown } | undefined)?.error;
  if (!step) return { text: null, none: "the step is not in this run" };
  if (!step.category) return { text: null, none: isOpen(step) ? "it has not ended" : `it ended as ${step.state}` };
  return typeof error === "string" ? { text: error } : { text: null, none: isPending ? "not read yet" : "the agent gave no text" };
}
