// In the graph: a bracket behind the cards that one cancel ended, with what became of their code.
import type { Node as FlowNode } from "@xyflow/react";
import type { Cancel } from "./cancelled";
import { type Card, HEIGHT, WIDTH } from "./graph-layout";
import type { Row } from "./folds";

export type BracketData = { text: string; many: number };

/** Room for the words. */
const ROOM = 190;

/** One for each cancel whose members are drawn; right of every card that stands at their height. */
export function bracketsOf(cancels: readonly Cancel[], rows: readonly Row[], cards: ReadonlyMap<string, Card>): FlowNode<BracketData, "bracket">[] {
  return cancels.flatMap((cancel) => {
    const inside = new Set(cancel.members);
    const mine = rows.flatMap((row) => {
      const shows = row.kind === "step" ? inside.has(row.index) : row.kind === "group" && row.members.some((index) => inside.has(index));
      const card = shows ? cards.get(row.key) : undefined;
      return card ? [card] : [];
    });
    if (mine.length === 0) return [];
    const top = Math.min(...mine.map((card) => card.y));
    const bottom = Math.max(...mine.map((card) => card.y)) + HEIGHT;
    const beside = [...cards.values()].filter((card) => card.y < bottom && card.y + HEIGHT > top);
    const x = Math.max(...beside.map((card) => card.x)) + WIDTH + 10;
    return [{ id: `cancel ${cancel.at}`, type: "bracket" as const, position: { x, y: top }, width: ROOM, height: bottom - top, data: { text: cancel.text, many: cancel.members.length } }];
  });
}

export function Bracket({ data }: { data: BracketData }) {
  return <div className="graph-bracket" data-cancel={data.many} title={data.text}><span>{data.text}</span></div>;
}
