// Who called whom, and where it broke: the rows as cards, left to right. Selection never lays out,
// placed cards never move; Tidy lays out anew. For eyes: the list carries everything it shows.
import "./graph.css";
import { type Edge, type Node as FlowNode, MiniMap, ReactFlow, type ReactFlowInstance, ReactFlowProvider, Controls } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { count } from "@/look/format";
import { setQuery } from "@/router";
import { useKeys } from "@/shell/keys";
import { colourOf, lookOf } from "@/look/words";
import { Bracket, type BracketData, bracketsOf } from "./bracket";
import { cancelsOf } from "./cancelled";
import { CARD_TYPES, type CardData, sameData } from "./card";
import { type Card, HEIGHT, WIDTH, laidOut, nodesOf, placed } from "./graph-layout";
import type { Row } from "./folds";
import { type Forest, has, troubleOf } from "./forest";
import { type RunModel, chosenOf, wayFrom } from "./model";
import { lookWord } from "./row-words";

/** All of it, but not so small that its words cannot be read. */
const FIT = { padding: 0.08, maxZoom: 1, minZoom: 0.5 };

/** More cards than these are not drawn. */
const DRAWN_MAX = 300;
const MAP_FROM = 60;

type Drawn = FlowNode<CardData, "card"> | FlowNode<BracketData, "bracket">;
const NODE_TYPES = { ...CARD_TYPES, bracket: Bracket };

type Props = { model: RunModel; showPath: boolean; tidied: number };

export default function TreeView(props: Props) {
  return <ReactFlowProvider><Graph {...props} /></ReactFlowProvider>;
}

function Graph({ model, showPath, tidied }: Props) {
  const { forest, selected, open, select } = model;
  const rows = useMemo(() => model.rows.filter((row) => row.kind !== "more").slice(0, DRAWN_MAX), [model.rows]);
  const left = model.rows.length - rows.length;
  const flow = useRef<ReactFlowInstance<Drawn> | null>(null);
  const cards = useCards(rows, tidied, model.generation);
  const [moving, setMoving] = useState(false);
  const { box, moved } = useRefit(flow);
  const brackets = useMemo(() => bracketsOf(cancelsOf(forest), rows, cards), [forest, rows, cards]);
  const placedCards = useNodes(rows, cards, { forest, selected, critical: showPath ? model.critical.steps : null });
  const nodes = useMemo<Drawn[]>(() => [...placedCards, ...brackets], [placedCards, brackets]);
  const edges = useEdges(rows, forest, showPath ? model.critical.steps : null);

  // Tidy is animated, and the selected card stays where it is on the screen.
  const before = useRef({ tidied, cards });
  useEffect(() => {
    const was = before.current;
    before.current = { tidied, cards };
    if (was.tidied === tidied) return;
    setMoving(true);
    const key = selected === null ? null : selected.toString(36);
    const from = key === null ? undefined : was.cards.get(key);
    const to = key === null ? undefined : cards.get(key);
    const view = flow.current?.getViewport();
    if (from && to && view) void flow.current?.setViewport({ ...view, x: view.x + (from.x - to.x) * view.zoom, y: view.y + (from.y - to.y) * view.zoom }, { duration: 120 });
    else void flow.current?.fitView({ ...FIT, duration: 120 });
    const timer = setTimeout(() => setMoving(false), 200);
    return () => clearTimeout(timer);
  }, [tidied, cards, selected]);

  // What was selected elsewhere comes into sight; what is in sight stays where it is.
  useEffect(() => {
    if (selected === null) return;
    moved.current = true;
    reveal(flow.current, cards.get(selected.toString(36)));
  }, [selected]); // eslint-disable-line

  const go = (where: "previous" | "next" | "parent" | "child") => () => {
    const next = wayFrom({ ...model, cursor: null }, where);
    if (next !== null) select(next);
  };
  const zoomToChosen = () => {
    const card = cards.get((chosenOf({ ...model, cursor: null }) ?? -1).toString(36));
    if (card) byHand(() => flow.current?.setCenter(card.x + WIDTH / 2, card.y + HEIGHT / 2, { zoom: 1.25, duration: 0 }));
  };
  const byHand = (move: () => unknown) => {
    moved.current = true;
    move();
  };
  useKeys([
    { key: "ArrowLeft", does: "caller", run: go("parent") },
    { key: "ArrowRight", does: "first call", run: go("child") },
    { key: "ArrowUp", does: "call before", run: go("previous") },
    { key: "ArrowDown", does: "call after", run: go("next") },
    { key: "j", does: "call after", run: go("next") },
    { key: "k", does: "call before", run: go("previous") },
    { key: "+", does: "zoom in", run: () => byHand(() => flow.current?.zoomIn({ duration: 0 })) },
    { key: "-", does: "zoom out", run: () => byHand(() => flow.current?.zoomOut({ duration: 0 })) },
    { key: "z", does: "zoom to the selected step", run: zoomToChosen },
    { key: "Shift+Z", does: "show all", run: () => void flow.current?.fitView(FIT) },
  ]);
  const onNodeClick = useCallback((_: unknown, node: Drawn) => { if (node.type === "card") open(node.data.row); }, [open]);
  return (
    <div className="relative flex min-h-0 min-w-0 flex-1 flex-col">
      <p className="visually-hidden">The graph is a picture. <a href="?view=list" onClick={(event) => { event.preventDefault(); setQuery({ view: "list" }); }}>The list</a> has everything it shows.</p>
      {left > 0 && (
        <p className="py-1 text-text-2">
          {count(rows.length)} cards drawn, {count(left)} rows are not: <button type="button" className="text-accent hover:underline" onClick={() => setQuery({ view: "list" })}>the list</button> has them all
        </p>
      )}
      <div ref={box} aria-hidden className={`run-graph min-h-0 flex-1 ${moving ? "tidying" : ""}`}>
        <ReactFlow
          nodes={nodes} edges={edges} nodeTypes={NODE_TYPES} onInit={(instance) => {
            flow.current = instance;
            outOfTabs();
            // What the address selects is in sight at first, too.
            if (selected !== null) reveal(instance, cards.get(selected.toString(36)));
          }}
          onNodeClick={onNodeClick} onlyRenderVisibleElements nodesDraggable={false} nodesConnectable={false} nodesFocusable={false} edgesFocusable={false}
          elementsSelectable={false} disableKeyboardA11y deleteKeyCode={null} selectionKeyCode={null} multiSelectionKeyCode={null} zoomActivationKeyCode={null} panActivationKeyCode={null}
          minZoom={0.1} maxZoom={2} panOnScroll zoomOnDoubleClick={false} fitView fitViewOptions={FIT} onMoveStart={(event) => { if (event) moved.current = true; }}
        >
          <Controls showInteractive={false} />
          {rows.length > MAP_FROM && <MiniMap pannable zoomable nodeColor={mapColour} nodeStrokeWidth={0} style={{ width: 160, height: 110 }} />}
        </ReactFlow>
      </div>
    </div>
  );
}

/** Shows all of it again when the room for it changed in height (a banner came), until the reader has moved it. */
function useRefit(flow: React.RefObject<ReactFlowInstance<Drawn> | null>) {
  const box = useRef<HTMLDivElement>(null);
  const moved = useRef(false);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let [width, height] = [element.clientWidth, element.clientHeight];
    let frame = 0;
    const watch = new ResizeObserver(() => {
      const higher = element.clientHeight !== height && element.clientWidth === width;
      [width, height] = [element.clientWidth, element.clientHeight];
      // After the graph itself has heard of it.
      if (higher && !moved.current) frame = requestAnimationFrame(() => void flow.current?.fitView(FIT));
    });
    watch.observe(element);
    return () => {
      watch.disconnect();
      cancelAnimationFrame(frame);
    };
  }, [flow]);
  return { box, moved };
}

/** Where each card is: kept while rows come and go; anew on Tidy. */
function useCards(rows: readonly Row[], tidied: number, generation: number): ReadonlyMap<string, Card> {
  const kept = useRef<{ cards: ReadonlyMap<string, Card>; rows: readonly Row[]; tidied: number; generation: number } | null>(null);
  const last = kept.current;
  if (last && last.rows === rows && last.tidied === tidied && last.generation === generation) return last.cards;
  const nodes = nodesOf(rows);
  const cards = last && last.tidied === tidied && last.generation === generation ? placed(nodes, last.cards) : laidOut(nodes);
  kept.current = { cards, rows, tidied, generation };
  return cards;
}

type Shown = { forest: Forest; selected: number | null; critical: ReadonlySet<number> | null };
type CardNode = FlowNode<CardData, "card">;

/** The same objects for cards that did not change, so that only changed ones are drawn again. */
function useNodes(rows: readonly Row[], cards: ReadonlyMap<string, Card>, { forest, selected, critical }: Shown): CardNode[] {
  const kept = useRef(new Map<string, CardNode>());
  return useMemo(() => {
    const next = new Map<string, CardNode>();
    for (const row of rows) {
      const card = cards.get(row.key);
      if (!card || row.kind === "more") continue;
      const step = row.kind === "step" ? (forest.steps[row.index] ?? null) : null;
      const data: CardData = { row, step, forest, selected: row.kind === "step" && row.index === selected, path: row.kind === "step" && (critical?.has(row.index) ?? false) };
      const before = kept.current.get(row.key);
      const same = before && before.position.x === card.x && before.position.y === card.y && sameData(before.data, data);
      next.set(row.key, same ? before : { id: row.key, type: "card", position: { x: card.x, y: card.y }, width: WIDTH, height: HEIGHT, data });
    }
    kept.current = next;
    return [...next.values()];
  }, [rows, cards, forest, selected, critical]);
}

function useEdges(rows: readonly Row[], forest: Forest, critical: ReadonlySet<number> | null): Edge[] {
  return useMemo(() => nodesOf(rows).flatMap((node, at): Edge[] => {
    if (node.parent === null) return [];
    const row = rows[at];
    const step = row?.kind === "step" ? forest.steps[row.index] : undefined;
    const onPath = step !== undefined && (critical?.has(step.index) ?? false);
    const style = onPath ? { stroke: "var(--text)", strokeWidth: 2.5 } : step && has(step, "detached") ? { strokeDasharray: "5 4" } : undefined;
    return [{ id: `${node.parent}>${node.key}`, source: node.parent, target: node.key, type: "straight", ...(style ? { style } : {}) }];
  }), [rows, forest, critical]);
}

function mapColour(node: Drawn): string {
  if (node.type !== "card") return "transparent";
  const { row, step, forest } = node.data;
  if (step) return colourOf(lookOf(lookWord(step)).colour);
  if (row.kind === "group" && row.members.some((index) => { const member = forest.steps[index]; return member !== undefined && troubleOf(member) === "failed"; })) return "var(--fail)";
  return "var(--neutral)";
}

/** Nothing of the picture is on the way of the Tab key: every act in it has a key, and the list has the rest. */
function outOfTabs(): void {
  for (const each of document.querySelectorAll(".run-graph a, .run-graph button, .run-graph [tabindex]")) each.setAttribute("tabindex", "-1");
}

function reveal(flow: ReactFlowInstance<Drawn> | null, card: Card | undefined): void {
  const box = document.querySelector(".run-graph")?.getBoundingClientRect();
  if (!flow || !card || !box) return;
  const { x, y, zoom } = flow.getViewport();
  const left = card.x * zoom + x;
  const top = card.y * zoom + y;
  const inside = left >= 0 && top >= 0 && left + WIDTH * zoom <= box.width && top + HEIGHT * zoom <= box.height;
  if (!inside) void flow.setCenter(card.x + WIDTH / 2, card.y + HEIGHT / 2, { zoom, duration: 0 });
}
