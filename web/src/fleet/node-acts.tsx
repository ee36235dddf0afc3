// What can be done to a node. Cordon and pin are done at once and taken back; drain ends its workers,
// so it is asked first, in the plane's words; lost, retire and delete want its name typed.
import { useRef, useState } from "react";
import { queries } from "@/api/queries";
import { navigate } from "@/router";
import { type Act, ActButton } from "@/parts/act";
import { ActGroup } from "@/parts/act-group";
import { type NodeVerb, actOnNode, deleteNode, pinNode, wouldDelete, wouldOnNode } from "./calls";
import { NodeWould } from "./consequence";
import type { NodeWhole } from "./shapes";
import { undoOf } from "./undo";

const refresh = () => void queries.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[0]).startsWith("/api/v1/fleet") });

const PINS = ["online", "suspect", "unreachable"];

export function NodeActs({ node, more }: { node: NodeWhole; more: { open: boolean; toggle(): void } }) {
  const { name, id, wish } = node;
  const gone = wish === "retired" ? "it is retired" : undefined;

  const wished = (verb: string, to: NodeVerb, hint: string, said: string, disabled?: string): Act => {
    const back = undoOf(wish);
    return {
      verb, kind: "undo", scope: "operate", hint, disabled: gone ?? disabled, command: `muster nodes ${to} ${name}`,
      run: async (key) => {
        await actOnNode(id, to, key);
        refresh();
        return said;
      },
      undo: back && (async (key) => {
        await actOnNode(id, back, key);
        refresh();
        return "taken back";
      }),
    };
  };
  const drain: Act = {
    verb: "Drain", kind: "ask", scope: "operate", danger: true, hint: "Shift+D", disabled: gone, object: name, command: `muster nodes drain ${name}`,
    consequence: async () => <><NodeWould would={await wouldOnNode(id, "drain")} /><p className="mt-2">Activate lets it take work again; a worker that was released does not come back.</p></>,
    run: async (key) => {
      await actOnNode(id, "drain", key);
      refresh();
      return "draining: no new work, its workers are released";
    },
  };
  return (
    <>
      {wish === "active"
        ? <ActButton key="drain" act={drain} />
        : <ActButton key="activate" act={wished("Activate", "activate", "Shift+D", "takes work again")} />}
      <ActButton act={wished("Cordon", "cordon", "Shift+O", "no new work; what runs goes on", wish === "cordoned" ? "it is cordoned" : undefined)} />
      <button type="button" className="button" aria-expanded={more.open} aria-label="More acts" onClick={more.toggle}>⋯</button>
    </>
  );
}

/** What is seldom done, or final: a row of its own under the head, so that nothing there moves. */
export function MoreNodeActs({ node }: { node: NodeWhole }) {
  const { name, id, wish } = node;
  const gone = wish === "retired" ? "it is retired" : undefined;
  const wide = (verb: string, to: "lost" | "retire", said: string, disabled?: string): Act => ({
    verb, kind: "wide", scope: "operate", danger: true, confirm: name, disabled, command: `muster nodes ${to} ${name}`,
    consequence: async () => <NodeWould would={await wouldOnNode(id, to)} />,
    run: async (key) => {
      await actOnNode(id, to, key);
      refresh();
      return said;
    },
  });
  return (
    <div role="group" aria-label="More acts" className="flex flex-wrap items-center gap-2 sm:justify-end">
      <ActGroup>
        <Pin node={node} />
        <ActButton act={wide("Mark lost", "lost", "lost: its workers are, too", node.state === "online" ? "it is online" : node.state === "lost" ? "it is lost" : gone)} />
        <ActButton act={wide("Retire", "retire", "retired: it may not connect any more", gone)} />
        <ActButton act={{
          verb: "Delete", kind: "wide", scope: "operate", danger: true, confirm: name, command: `muster nodes delete ${name}`,
          consequence: async () => <NodeWould would={await wouldDelete(id)} />,
          run: async (key) => {
            await deleteNode(id, key);
            refresh();
            navigate("/fleet", { replace: true });
            return "deleted, with its history";
          },
        }} />
      </ActGroup>
    </div>
  );
}

function Pin({ node }: { node: NodeWhole }) {
  const [state, setState] = useState<string>(node.pin?.state ?? node.state);
  const pinned = node.pin?.state;
  // What an undo goes back to, as above.
  const before = useRef(pinned);
  const restore = async (key: string) => {
    if (before.current) await pinNode(node.id, before.current, key);
    else await actOnNode(node.id, "unpin", key);
    refresh();
    return before.current ? `pinned ${before.current} again` : "not pinned";
  };
  return (
    <span className="flex items-center gap-1">
      <select className="field" aria-label="State to pin" value={PINS.includes(state) ? state : "online"} onChange={(event) => setState(event.target.value)}>
        {PINS.map((pin) => <option key={pin}>{pin}</option>)}
      </select>
      <ActButton act={{
        verb: "Pin", kind: "undo", scope: "operate", command: `muster nodes pin ${node.name} ${state}`,
        run: async (key) => {
          before.current = pinned;
          await pinNode(node.id, PINS.includes(state) ? state : "online", key);
          refresh();
          return `counts as ${state}, whatever its facts say`;
        },
        undo: restore,
      }} />
      {pinned && (
        <ActButton act={{
          verb: "Unpin", kind: "undo", scope: "operate", command: `muster nodes unpin ${node.name}`,
          run: async (key) => {
            before.current = pinned;
            await actOnNode(node.id, "unpin", key);
            refresh();
            return "its facts decide again";
          },
          undo: restore,
        }} />
      )}
    </span>
  );
}
