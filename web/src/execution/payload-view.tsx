// One payload on screen: as a folding tree, as the text that is stored, or as bytes when it is no
// text. Shows the beginning of a large one and says so; the rest is a download away.
import { type ReactNode, useLayoutEffect, useMemo, useRef, useState } from "react";
import { bytes as size, count } from "@/look/format";
import { Plain } from "@/parts/plain";
import { ErrorPanel, Skeleton } from "@/parts/says";
import { useCopy } from "@/parts/values";
import { Window } from "@/parts/window";
import { linesOf, rowText, rowsOf } from "./json/lines";
import { JsonTree, type TreeHandle } from "./json-tree";
import { tokensOf } from "./json/tokens";
import { PART_BYTES, type PayloadKind, SHOWN_BYTES_MAX, WHOLE_BYTES, payloadAddress, textOf, usePayload } from "./payload";

/** How the reader looked at a payload last, in this tab. */
let lastView: "tree" | "text" = "tree";

export type PayloadViewProps = {
  id: string;
  kind: PayloadKind;
  /** What it is called: "Input", "Result". */
  name: string;
  /** Said when there is none. */
  none: ReactNode;
  /** It does not change any more. */
  settled: boolean;
  /** Fills the box it stands in; else it is as high as its rows, up to a bound. */
  fill?: boolean;
};

export function PayloadView({ id, kind, name, none, settled, fill }: PayloadViewProps) {
  const [upTo, setUpTo] = useState<number | null>(null);
  const { data: part, error, refetch, isPlaceholderData } = usePayload(id, kind, { upTo, settled });
  const [view, setView] = useState(lastView);
  const [copied, copy] = useCopy();
  const tree = useRef<TreeHandle>(null);
  const shown = part?.is === "here" ? part : undefined;
  const whole = shown !== undefined && shown.bytes.length >= shown.total;
  const read = useMemo(() => (shown ? textOf(shown.bytes, shown.bytes.length >= shown.total) : undefined), [shown]);
  const tokens = useMemo(() => (read?.utf8 ? tokensOf(read.text, { partial: !whole }) : undefined), [read, whole]);

  if (!part) return error ? <ErrorPanel error={error} what={name} retry={() => void refetch()} /> : <Skeleton rows={4} what={name} />;
  if (part.is === "none") return <p className="p-3 text-text-2">{none}</p>;
  if (part.is === "gone") {
    return (
      <p className="p-3 text-text-2">
        {name}: gone. <Plain text={part.says} />
      </p>
    );
  }
  const look = (next: "tree" | "text") => {
    lastView = next;
    setView(next);
  };
  const canTree = tokens !== undefined && tokens.nodes.length > 0;
  const asTree = canTree && view === "tree";
  return (
    <section aria-label={name} className={`flex min-h-0 flex-col ${fill ? "flex-1" : ""}`}>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-border px-3 py-1 text-xs">
        <h3 className="font-semibold">{name}</h3>
        <span className="text-text-2">
          {whole ? size(part.total) : `first ${size(part.bytes.length)} of ${size(part.total)}`}
        </span>
        {canTree && (
          <span role="group" aria-label="View" className="flex gap-1">
            {(["tree", "text"] as const).map((each) => (
              <button key={each} type="button" aria-pressed={view === each} onClick={() => look(each)}
                className={`min-h-[24px] rounded-sm px-1.5 ${view === each ? "bg-selected" : "hover:bg-hover"}`}>{each}</button>
            ))}
          </span>
        )}
        {asTree && (
          <>
            <button type="button" className="min-h-[24px] hover:underline" onClick={() => tree.current?.all("open")}>open all</button>
            <button type="button" className="min-h-[24px] hover:underline" onClick={() => tree.current?.all("closed")}>fold all</button>
          </>
        )}
        <span className="flex-1" />
        {read?.utf8 && (
          <button type="button" className="min-h-[24px] text-accent hover:underline" onClick={() => copy(read.text)}>
            {copied ? "copied" : whole ? "copy" : "copy what is shown"}
          </button>
        )}
        <a className="text-accent" href={payloadAddress(id, kind)} download={`${id}-${kind}.json`}>download</a>
      </div>
      {tokens?.fault && read?.text !== "" && (
        <p className="px-3 py-1 text-xs text-wait">
          not JSON at character {count(tokens.fault.at + 1)}: {tokens.fault.says}
        </p>
      )}
      {tokens?.more && <p className="px-3 py-1 text-xs text-text-2">the tree shows the first {count(tokens.nodes.length)} values; the text has more</p>}
      {part.total === 0 ? <p className="p-3 text-text-2">Empty: 0 bytes.</p>
        : asTree && tokens ? <JsonTree tokens={tokens} label={name} fill={fill} handle={tree} />
          : read?.utf8 ? <StoredText text={read.text} label={name} fill={fill} />
            : <Bytes bytes={part.bytes} label={name} fill={fill} />}
      {!whole && (
        <p className="flex flex-wrap items-center gap-3 border-t border-border px-3 py-1 text-xs text-text-2">
          {size(part.total - part.bytes.length)} more
          {part.bytes.length < SHOWN_BYTES_MAX ? (
            <button type="button" className="min-h-[24px] text-accent hover:underline" disabled={isPlaceholderData}
              onClick={() => setUpTo(Math.min(part.bytes.length + (part.bytes.length < WHOLE_BYTES ? PART_BYTES : WHOLE_BYTES), SHOWN_BYTES_MAX))}>
              show more
            </button>
          ) : <span>only by downloading</span>}
        </p>
      )}
    </section>
  );
}

/** How high a window of so many rows is, when it does not fill its box. */
export const boxOf = (rows: number, fill?: boolean): string => (fill ? "min-h-40 flex-1" : rows > 18 ? "h-96" : "");

function StoredText({ text, label, fill }: { text: string; label: string; fill?: boolean }) {
  const [box, columns] = useColumns();
  const lines = useMemo(() => linesOf(text, columns), [text, columns]);
  return (
    <div ref={box} className={`flex min-h-0 flex-col ${fill ? "flex-1" : ""}`}>
    <Window label={`${label}, as stored`} rows={rowsOf(lines)} className={`px-3 py-1 font-mono text-xs ${boxOf(rowsOf(lines), fill)}`} height={18}
      row={(row) => (
        <pre className="whitespace-pre">
          {lines.continued[row] && <span className="text-text-3 select-none" title="goes on with the line above">↪ </span>}
          <Plain text={rowText(text, lines, row)} lines />
        </pre>
      )} />
    </div>
  );
}

/** Width of a character of the monospaced 12 px font, and what is beside the text: padding, mark, scrollbar. */
const CHARACTER_PX = 7.3;
const BESIDE_PX = 64;

/** How many characters fit into the box, in steps, so that dragging its edge does not lay out at each pixel. */
function useColumns(): [React.RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [columns, setColumns] = useState(100);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setColumns(Math.max(32, Math.floor((element.clientWidth - BESIDE_PX) / CHARACTER_PX / 4) * 4));
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return [box, columns];
}

const ROW_BYTES = 16;

function Bytes({ bytes, label, fill }: { bytes: Uint8Array; label: string; fill?: boolean }) {
  const rows = Math.ceil(bytes.length / ROW_BYTES);
  return (
    <>
      <p className="px-3 py-1 text-xs text-wait">not text: these bytes are no UTF-8</p>
      <Window label={`${label}, as bytes`} rows={rows} className={`px-3 py-1 font-mono text-xs ${boxOf(rows, fill)}`} height={18}
        row={(row) => {
          const part = Array.from(bytes.subarray(row * ROW_BYTES, (row + 1) * ROW_BYTES));
          const hex = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
          const text = part.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
          return (
            <pre className="whitespace-pre">
              <span className="text-text-3">{(row * ROW_BYTES).toString(16).padStart(6, "0")}</span>  {hex.padEnd(ROW_BYTES * 3)} {text}
            </pre>
          );
        }} />
    </>
  );
}
