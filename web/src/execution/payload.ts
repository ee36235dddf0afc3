// Payloads of an execution, as the bytes that are stored: read by range, so that a large one costs
// no more than what is shown of it. Never parsed.
import { useQuery } from "@tanstack/react-query";
import { addressOf, send } from "@/api/client";
import { Problem } from "@/api/problem";

export type PayloadKind = "input" | "result" | "error_details" | "late";

/** A payload up to this size is shown whole. */
export const WHOLE_BYTES = 256 * 1024;
/** Of a larger one so much at first, and so much more at each wish. */
export const PART_BYTES = 64 * 1024;
/** More than this is for downloading. */
export const SHOWN_BYTES_MAX = 1024 * 1024;

export type Part =
  | { is: "here"; bytes: Uint8Array; total: number }
  /** There is no such payload. */
  | { is: "none" }
  /** It was there; retention has removed it. */
  | { is: "gone"; says: string };

export const payloadAddress = (id: string, kind: PayloadKind): string =>
  addressOf("/api/v1/executions/{id}/payload/{kind}", { path: { id, kind } });

/** Bytes `from` to before `to`. */
export async function readPayload(id: string, kind: PayloadKind, from: number, to: number, signal?: AbortSignal): Promise<Part> {
  let answer: Response;
  try {
    answer = await send(payloadAddress(id, kind), { headers: { range: `bytes=${from}-${to - 1}` }, signal });
  } catch (error) {
    const problem = Problem.of(error);
    if (problem.status === 410) return { is: "gone", says: problem.message };
    if (problem.status === 416) return { is: "here", bytes: new Uint8Array(), total: totalOf(problem) };
    if (problem.status === 404 && !/no execution/.test(problem.message)) return { is: "none" };
    throw problem;
  }
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const range = /\/(\d+)$/.exec(answer.headers.get("content-range") ?? "");
  return { is: "here", bytes, total: range ? Number(range[1]) : bytes.length };
}

/** The plane says the size in its sentence about a range that is beyond it. */
const totalOf = (problem: Problem): number => Number(/has (\d+) bytes/.exec(problem.message)?.[1] ?? 0);

/**
 * The beginning of a payload: all of a small one, a part of a large one. `settled`: it does not
 * change any more.
 */
export function usePayload(id: string, kind: PayloadKind, { upTo, settled, enabled = true }: { upTo: number | null; settled: boolean; enabled?: boolean }) {
  return useQuery<Part, Problem>({
    queryKey: ["payload", id, kind, upTo],
    enabled,
    staleTime: settled ? Number.POSITIVE_INFINITY : 2_000,
    gcTime: 60_000,
    placeholderData: (before, query) => (query?.queryKey[1] === id && query.queryKey[2] === kind ? before : undefined),
    queryFn: async ({ signal }) => {
      if (upTo !== null) return readPayload(id, kind, 0, upTo, signal);
      const part = await readPayload(id, kind, 0, WHOLE_BYTES, signal);
      if (part.is !== "here" || part.total <= WHOLE_BYTES) return part;
      return { ...part, bytes: part.bytes.slice(0, PART_BYTES) };
    },
  });
}

export type Text = {
  text: string;
  /** Whether the bytes are text at all. */
  utf8: boolean;
};

/** The bytes as text. Of a part, a character that is cut at its end is left out. */
export function textOf(bytes: Uint8Array, whole: boolean): Text {
  const end = whole ? bytes.length : wholeCharacters(bytes);
  try {
    return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.subarray(0, end)), utf8: true };
  } catch {
    return { text: "", utf8: false };
  }
}

/** How many bytes there are without a character that is not all there. */
function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] as number;
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) {
      const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return needs > back ? bytes.length - back : bytes.length;
    }
  }
  return bytes.length;
}
