// Rows, bars and cards in all their states, from a made-up run.
import "./run.css";
import { useEffect, useMemo, useState } from "react";
import type { Gallery } from "@/gallery/gallery";
import { late } from "@/parts/late";
import { WHOLE } from "./axis";
import { criticalPath } from "./critical";
import { EVERY_ROW, NOW } from "./every-row";
import { AUTO } from "./fold-state";
import { type Row, folded, remember } from "./folds";
import type { GridModel } from "./grid";
import { ListView } from "./list-view";
import { Patterned } from "./marks";
import type { RunModel } from "./model";
import { TimeView } from "./time-view";

const TreeView = late(() => import("./tree-view"), null);
const critical = criticalPath(EVERY_ROW, NOW);
const IDLE: ReadonlySet<number> = new Set();
const now = () => NOW;

function useFixture(): RunModel {
  const [selected, setSelected] = useState<number | null>(20);
  const [cursor, setCursor] = useState<string | null>("4");
  const [open, setOpen] = useState<ReadonlyMap<string, boolean>>(new Map());
  const memory = useMemo(() => remember(), []);
  const result = useMemo(() => folded({ forest: EVERY_ROW, fold: { ...AUTO, set: open }, filter: { only: "all", slower: null }, selected, critical: critical.steps, now: NOW }, memory), [open, selected, memory]);
  const toggle = (row: Row) => {
    if (row.kind !== "more") setOpen(new Map(open).set(row.key, !row.open));
  };
  const model: GridModel = {
    rows: result.rows, forest: EVERY_ROW, selected, cursor, setCursor, toggle, now, follow: false, stopFollowing: () => {},
    open: (row) => (row.kind === "step" ? setSelected(row.index) : toggle(row)),
  };
  return { ...result, ...model, critical, anew: () => {}, generation: 0, setFollow: () => {}, select: setSelected };
}

/** As high as all of its rows. */
function Box({ children, high }: { children: React.ReactNode; high: number }) {
  const [ready, setReady] = useState(false);
  useEffect(() => setReady(true), []);
  return <div className="flex" style={{ height: high }}>{ready && <Patterned>{children}</Patterned>}</div>;
}

function Time() {
  const model = useFixture();
  return <Box high={32 + model.rows.length * 28 + 4}><TimeView {...model} label="Steps" height={28} goesOn zoom={WHOLE} idle={IDLE} critical={critical} showPath /></Box>;
}
function List({ phone }: { phone: boolean }) {
  const model = useFixture();
  return <Box high={28 + model.rows.length * 28 + 4}><ListView {...model} label="Steps" height={28} phone={phone} /></Box>;
}
function Tree() {
  return <Box high={900}><TreeView model={useFixture()} showPath tidied={0} /></Box>;
}

const gallery: Gallery = {
  title: "Steps of a run",
  states: [
    { name: "time: every row, selected, under the cursor, on the path", show: () => <Time /> },
    { name: "list", show: () => <List phone={false} /> },
    { name: "list on a phone", show: () => <div style={{ maxWidth: 366 }}><List phone /></div> },
    { name: "tree", show: () => <Tree /> },
  ],
};
export default gallery;
