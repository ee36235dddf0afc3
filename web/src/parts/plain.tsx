// Text that an agent, a caller or a person gave: always text, never markup, with what cannot be
// seen as escapes that look different from the text around them.
import { memo } from "react";
import { type Outside, piecesOf } from "@/look/plain";
import { Unknown } from "./values";

/** `lines` keeps line ends and tabs (in a `pre`). */
export const Plain = memo(function Plain({ text, lines }: { text: Outside; lines?: boolean }) {
  if (text === null || text === undefined) return <Unknown reason="the plane does not say" />;
  const pieces = piecesOf(text, { lines });
  if (pieces.length === 0) return null;
  const first = pieces[0];
  if (pieces.length === 1 && first && !first.escape) return <bdi>{first.text}</bdi>;
  return (
    <bdi>
      {pieces.map((piece, index) =>
        piece.escape ? (
          <span key={index} className="rounded-sm bg-tint-neutral text-text-2" title="a character that cannot be seen">
            {piece.text}
          </span>
        ) : (
          <span key={index}>{piece.text}</span>
        ),
      )}
    </bdi>
  );
});
