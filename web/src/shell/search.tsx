// The search (`/`): any id or its tail, names, functions, labels, and words like `state:failed`.
// The plane searches; payloads are not searched, and it says so.
import { useEffect, useState } from "react";
import { useGet } from "@/api/queries";
import type { FoundItem } from "@/api/shapes";
import { StateMark } from "@/parts/state-mark";
import { Plain } from "@/parts/plain";
import { Said } from "@/parts/said";
import { Age, Id } from "@/parts/values";
import { BASE, below, navigate } from "@/router";
import { type Pick, type PickGroup, Picker } from "./picker";
import { commandOf } from "./commands";
import { recents } from "./recent";

const WAIT_MS = 120;
const NAMES: Record<string, string> = {
  run: "Runs", execution: "Executions", agent: "Agents", function: "Functions", node: "Nodes", worker: "Workers", approval: "Decisions",
};
export const nameOf = (kind: string) => NAMES[kind] ?? kind;

export const goTo = (path: string) => ({ newTab }: { newTab: boolean }) => {
  if (newTab) window.open(BASE + path, "_blank", "noopener");
  else navigate(path);
};

/** A text that has stood for a moment. */
export function useSettled(text: string, ms = WAIT_MS): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), ms);
    return () => clearTimeout(timer);
  }, [text, ms]);
  return settled;
}

/** What the plane finds for a text; the last answer stays until the next is there. */
export function useFound(text: string) {
  const q = useSettled(text.trim());
  return useGet("/api/v1/search", { query: { q, limit: 8 } }, { enabled: q.length > 0, keep: true, staleTime: 5_000 });
}

export function pickOf(kind: string, item: FoundItem): Pick {
  return {
    id: `${kind} ${item.id}`,
    content: (
      <>
        {item.state !== null && <StateMark state={item.state} compact />}
        <span className="max-w-[60%] shrink-0 truncate"><Plain text={item.title} /></span>
        {item.title !== item.id && kind !== "function" && <span className="lg:hidden"><Id id={item.id} plain /></span>}
        <span className="truncate text-text-2"><Said text={item.text} /></span>
      </>
    ),
    hint: <>{item.at && <Age at={item.at} />}<code className="hidden max-w-72 truncate lg:inline">{commandOf(below(item.path))}</code></>,
    run: goTo(below(item.path)),
  };
}

export default function Search({ close }: { close(): void }) {
  const [text, setText] = useState("");
  const { data, error, isFetching } = useFound(text);
  const asked = text.trim() !== "";
  const groups: PickGroup[] = asked
    ? (data?.groups ?? []).map((group) => ({ name: nameOf(group.kind), picks: group.items.map((item) => pickOf(group.kind, item)), more: group.more ? "and more: say more of it" : undefined }))
    : [{ name: "Seen in this tab", picks: recents().slice(0, 8).map((recent) => ({ id: recent.path, content: recent.title, hint: <code className="hidden truncate sm:inline">{commandOf(recent.path)}</code>, run: goTo(recent.path) })) }];
  const understood = asked && data?.understood.filter((term) => term.key !== "text" && term.key !== "id");
  return (
    <Picker
      label="Search" placeholder="An id or its last 4 characters, a name, state:failed agent:weather since:2h …" close={close} text={text} setText={setText} groups={groups}
      empty={
        error ? <span className="text-fail">{error.message}</span>
          : !asked ? "Type an id, a name, a function or a label. Words like state:failed, agent:weather, fn:lookup, category:agent_error, label:team=a, since:2h narrow it."
            : isFetching || !data ? "asking the plane …" : <>Nothing is called that. {data.note}</>
      }
      note={
        <>
          {understood && understood.length > 0 && <span className="mr-3">understood: {understood.map((term) => <code key={term.key + term.value} className="mr-2"><Plain text={`${term.key}:${term.value}`} /></code>)}</span>}
          {asked && data && groups.length > 0 ? data.note : "Payloads are not searched."}
        </>
      }
    />
  );
}
