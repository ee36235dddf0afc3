// JSON as a folding tree, in a window: keys, values with every digit, long strings folded. Moves by
// arrows; copies a path or a value. Values are text, whatever they look like.
import { type Ref, useCallback, useEffect, useId, useImperativeHandle, useMemo, useRef, useState } from "react";
import { count } from "@/look/format";
import { Plain } from "@/parts/plain";
import { useCopy } from "@/parts/values";
import { Window, type WindowHandle } from "@/parts/window";
import { rowText } from "./json/lines";
import { type Kind, type Node, type Tokens, decoded, keyOf, pathOf, sourceOf } from "./json/tokens";
import { type Folds, STRING_SHOWN, isHolder, isLong, isOpen, linesOfString, rowsOfTree } from "./json/tree";

export type TreeHandle = { all(which: "open" | "closed"): void };

/** Numbers and words stand out by weight of colour; strings are the plain case. */
const COLOURS: Record<Kind, string> = {
  object: "text-text-3", array: "text-text-3", string: "text-text", number: "text-run", true: "text-time", false: "text-time",
  null: "text-text-3", odd: "text-fail",
};

/** Deeper than this, indentation stops growing; the depth is then written. */
const INDENT_MAX = 24;

export function JsonTree({ tokens, label, fill, handle }: { tokens: Tokens; label: string; fill?: boolean; handle?: Ref<TreeHandle> }) {
  const [folds, setFolds] = useState<Folds>({ changed: new Set() });
  const [active, setActive] = useState(0);
  const rows = useMemo(() => rowsOfTree(tokens, folds), [tokens, folds]);
  const box = useRef<WindowHandle>(null);
  const name = useId();
  useImperativeHandle(handle, () => ({ all: (which) => setFolds({ all: which, changed: new Set() }) }), []);
  const turn = useCallback((node: number) => {
    setFolds((before) => {
      const changed = new Set(before.changed);
      if (!changed.delete(node)) changed.add(node);
      return { ...before, changed };
    });
  }, []);
  const strings = useStrings(tokens);
  const at = Math.min(active, rows.length - 1);
  useEffect(() => box.current?.show(at), [at]);

  const onKeyDown = (event: React.KeyboardEvent) => {
    const row = rows[at];
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const node = tokens.nodes[row.node] as Node;
    const folding = isHolder(node) || isLong(node);
    const open = folding && isOpen(tokens, row.node, folds);
    const go = (to: number) => setActive(Math.max(0, Math.min(rows.length - 1, to)));
    switch (event.key) {
      case "ArrowDown": go(at + 1); break;
      case "ArrowUp": go(at - 1); break;
      case "PageDown": go(at + 15); break;
      case "PageUp": go(at - 15); break;
      case "Home": go(0); break;
      case "End": go(rows.length - 1); break;
      case "ArrowRight": if (folding && !open) turn(row.node); else if (open) go(at + 1); break;
      case "ArrowLeft":
        if (open) turn(row.node);
        else go(rows.findIndex((each) => each.node === node.parent && each.part < 0));
        break;
      case "Enter": if (folding) turn(row.node); break;
      default: return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <Window label={label} role="tree" rows={rows.length} height={20} handle={box} onKeyDown={onKeyDown}
      className={`py-1 font-mono text-xs ${fill ? "min-h-40 flex-1" : rows.length > 18 ? "h-96" : ""}`}
      active={`${name}-${at}`}
      row={(index) => {
        const row = rows[index];
        if (!row) return null;
        const node = tokens.nodes[row.node] as Node;
        return (
          <div id={`${name}-${index}`} role="treeitem" aria-level={node.depth + 1} aria-selected={index === at} aria-setsize={tokens.nodes[node.parent]?.count ?? 1}
            aria-posinset={node.index + 1} aria-expanded={isHolder(node) || isLong(node) ? isOpen(tokens, row.node, folds) : undefined}
            className={`group flex h-[20px] items-center gap-1 pr-3 whitespace-pre ${index === at ? "bg-selected" : "hover:bg-hover"}`}
            style={{ paddingLeft: 12 + Math.min(node.depth, INDENT_MAX) * 14 }}
            onClick={() => setActive(index)}>
            {row.part < 0
              ? <Value tokens={tokens} node={node} index={row.node} open={isOpen(tokens, row.node, folds)} turn={turn} />
              : <span className="pl-4"><Plain text={rowText(strings(row.node).text, strings(row.node).lines, row.part)} lines /></span>}
            {index === at && row.part < 0 && <Copies tokens={tokens} node={node} index={row.node} />}
          </div>
        );
      }} />
  );
}

/** Opened strings in lines, each made once. */
function useStrings(tokens: Tokens) {
  return useMemo(() => {
    const made = new Map<number, ReturnType<typeof linesOfString>>();
    return (index: number) => {
      let found = made.get(index);
      if (!found) made.set(index, (found = linesOfString(tokens, tokens.nodes[index] as Node)));
      return found;
    };
  }, [tokens]);
}

function Value({ tokens, node, index, open, turn }: { tokens: Tokens; node: Node; index: number; open: boolean; turn(node: number): void }) {
  const key = keyOf(tokens, node);
  const long = isLong(node);
  const holder = isHolder(node);
  const brackets = node.kind === "array" ? "[]" : "{}";
  return (
    <>
      {holder || long ? (
        <button type="button" tabIndex={-1} aria-hidden className="w-4 shrink-0 text-center text-text-2 select-none" onClick={() => turn(index)}>
          {open ? "▾" : "▸"}
        </button>
      ) : <span className="w-4 shrink-0" />}
      {key !== undefined ? <span className="text-text-2"><Plain text={key} />: </span> : node.parent >= 0 && <span className="text-text-3">{node.index}: </span>}
      {holder ? (
        <span className="text-text-3">
          {node.count === 0 && !node.cut ? brackets : `${brackets[0]}${open ? "" : "…"}${brackets[1]}`}
          {node.count > 0 && ` ${count(node.count)}${node.cut ? "+" : ""} ${node.kind === "array" ? (node.count === 1 ? "item" : "items") : node.count === 1 ? "key" : "keys"}`}
          {node.cut && <Cut />}
        </span>
      ) : node.kind === "string" ? (
        <StringValue tokens={tokens} node={node} open={open} long={long} />
      ) : (
        <span className={COLOURS[node.kind]}><Plain text={sourceOf(tokens, node)} />{node.cut && <Cut />}</span>
      )}
    </>
  );
}

const Cut = () => <span className="text-wait" title="its end is not in the part that is shown"> cut</span>;

function StringValue({ tokens, node, open, long }: { tokens: Tokens; node: Node; open: boolean; long: boolean }) {
  const source = sourceOf(tokens, node);
  if (!long) return <span className={COLOURS.string}>"<Plain text={decoded(source)} />"{node.cut && <Cut />}</span>;
  if (open) return <span className="text-text-3">string, {count(source.length - 2)} characters{node.cut && <Cut />}</span>;
  return (
    <span className={COLOURS.string}>
      "<Plain text={decoded(source.slice(0, STRING_SHOWN))} /><span className="text-text-3">… {count(source.length - 2)} characters</span>
      {node.cut && <Cut />}
    </span>
  );
}

function Copies({ tokens, node, index }: { tokens: Tokens; node: Node; index: number }) {
  const [path, copyPath] = useCopy();
  const [value, copyValue] = useCopy();
  const button = "min-h-[20px] rounded-sm bg-surface px-1 font-sans text-accent hover:underline disabled:text-text-3 disabled:no-underline";
  return (
    <span className="sticky right-2 ml-auto flex gap-1 pl-4">
      <button type="button" className={button} title={pathOf(tokens, index)} onClick={() => copyPath(pathOf(tokens, index))}>
        {path ? "copied" : "copy path"}
      </button>
      <button type="button" className={button} disabled={node.cut} title={node.cut ? "cut: download it for all of it" : "as it is stored"}
        onClick={() => copyValue(sourceOf(tokens, node))}>
        {value ? "copied" : "copy value"}
      </button>
    </span>
  );
}
