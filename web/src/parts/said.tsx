// A sentence of the plane: its ids short (whole on hover and when copied), its times in the
// reader's clock. As safe to look at as `Plain`, which shows what is between them.
import { Fragment } from "react";
import { placeOfId, saidPieces } from "@/look/said";
import { planeNow, useSecond } from "@/live/clock";
import { leftNow, saysLeft } from "@/look/left";
import { Link } from "@/router";
import { Plain } from "./plain";
import { Id, Time } from "./values";

/** `links`: ids lead to what they name; not in rows that are links themselves. */
export function Said({ text, links }: { text: string | null | undefined; links?: boolean }) {
  if (text === null || text === undefined) return <Plain text={text} />;
  const pieces = saidPieces(text);
  if (pieces.every((piece) => piece.is === "text")) return <Plain text={text} />;
  return (
    <>
      {pieces.map((piece, at) => {
        if (piece.is === "time") return <Time key={at} at={piece.text} />;
        if (piece.is === "text") return <Fragment key={at}><Plain text={piece.text} /></Fragment>;
        return links ? <Link key={at} to={placeOfId(piece.kind, piece.text)} className="text-accent"><Id id={piece.text} plain /></Link> : <Id key={at} id={piece.text} plain />;
      })}
    </>
  );
}

/** The same, of a sentence that was true at `at`: the time that it says is left goes on. */
export function SaidThen({ text, at, links }: { text: string | null | undefined; at: number | undefined; links?: boolean }) {
  return text && at !== undefined && saysLeft(text) ? <Ticking text={text} at={at} links={links} /> : <Said text={text} links={links} />;
}

function Ticking({ text, at, links }: { text: string; at: number; links?: boolean }) {
  useSecond();
  return <Said text={leftNow(text, at, planeNow())} links={links} />;
}
