// Sentences of the plane that hold ids and times: where these are, so that a page can show them
// short, in the reader's clock, and as links. Changes no word of what was said. Pure.
import { type ClockSetting, shortId, time } from "./format";

export type SaidPiece = { is: "text"; text: string } | { is: "time"; text: string } | { is: "id"; text: string; kind: string };

const FOUND = /\b(exec|run|node|wrk)_[0-9A-HJKMNP-TV-Z]{26}\b|\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g;

export function saidPieces(text: string | null | undefined): SaidPiece[] {
  if (text === null || text === undefined) return [{ is: "text", text: "—" }];
  const pieces: SaidPiece[] = [];
  let from = 0;
  for (const match of text.matchAll(FOUND)) {
    if (match.index > from) pieces.push({ is: "text", text: text.slice(from, match.index) });
    const kind = match[1];
    pieces.push(kind ? { is: "id", text: match[0], kind } : { is: "time", text: match[0] });
    from = match.index + match[0].length;
  }
  if (from < text.length) pieces.push({ is: "text", text: text.slice(from) });
  return pieces;
}

/** The sentence with short ids and the reader's clock, for labels, titles and one-line cells. */
export const saidShort = (text: string | null | undefined, clock: ClockSetting, now: number): string =>
  saidPieces(text).map((piece) => (piece.is === "id" ? shortId(piece.text) : piece.is === "time" ? time(Date.parse(piece.text), clock, now) : piece.text)).join("");

/** The page below `/ui` that shows an id. */
export function placeOfId(kind: string, id: string): string {
  const [first, ...rest] = { exec: ["executions"], run: ["runs"], node: ["fleet", "nodes"], wrk: ["fleet", "workers"] }[kind] ?? ["executions"];
  return `/${[first, ...rest, id].join("/")}`;
}

/** Where a rule is written, for reading: `docs/contract.md, “people in the loop”`. */
export function docWords(doc: string): string {
  const [file = "", part] = doc.split("#");
  return part ? `${file}, “${part.replaceAll("-", " ")}”` : file;
}
