// What can be done to the selected lines: cancel them, compare two, copy their ids. The bar stands
// at the foot of the list; the consequence names every run before anything is sent.
import type { ReactNode } from "react";
import { Problem } from "@/api/problem";
import { addressOf, send } from "@/api/client";
import { count } from "@/look/format";
import { ActButton, ActNow, type Act, Partly } from "@/parts/act";
import { KeyHint } from "@/parts/key-hint";
import { Plain } from "@/parts/plain";
import { StateMark } from "@/parts/state-mark";
import { Id, useCopy } from "@/parts/values";
import { navigate } from "@/router";
import { useKeys } from "@/shell/keys";
import { type Line, isOpen } from "./line";

/** At most so many are cancelled at once: each is one request. */
const MOST = 200;
const AT_ONCE = 4;

export function Bulk({ what, lines, unseen = 0, clear }: { what: "runs" | "executions"; lines: readonly Line[]; /** How many are not in the list as it is now. */ unseen?: number; clear(): void }) {
  const [copied, copy] = useCopy();
  const pair = [...new Set(lines.map((line) => line.run))];
  const compare = () => pair.length === 2 && navigate(`/compare?a=${encodeURIComponent(pair[0] ?? "")}&b=${encodeURIComponent(pair[1] ?? "")}`);
  useKeys([{ key: "=", does: "compare the two selected runs", run: compare }]);
  return (
    <div role="region" aria-label="Selected" className="flex flex-wrap items-center gap-2 border-t border-border pt-2">
      <span>{count(lines.length)} selected{unseen > 0 && <span className="text-text-2">, {count(unseen)} further down or gone</span>}</span>
      <ActButton act={cancelAll(what, lines)} />
      <button type="button" className="button" aria-disabled={pair.length !== 2 || undefined} title={pair.length === 2 ? undefined : "select two runs to compare"} onClick={compare}>Compare<KeyHint k="=" /></button>
      <button type="button" className="button" onClick={() => copy(lines.map((line) => line.id).join("\n"))}>{copied ? "copied" : "Copy ids"}</button>
      <button type="button" className="px-2 text-accent hover:underline" onClick={clear}>Select nothing</button>
    </div>
  );
}

/** The same for the marked line, from the list of acts: its consequence opens at once. */
export function CancelOne({ what, line, done }: { what: "runs" | "executions"; line: Line; done(): void }) {
  return <ActNow act={{ ...cancelAll(what, [line]), kind: "ask", dialog: true, object: line.name }} done={done} />;
}

function cancelAll(what: "runs" | "executions", lines: readonly Line[]): Act {
  const open = lines.filter((line) => isOpen(line.state));
  const template = what === "runs" ? "/api/v1/workflows/{run}/cancel-tree" : "/api/v1/executions/{id}/cancel";
  const addressFor = (line: Line, dry: boolean) => addressOf(template, { path: what === "runs" ? { run: line.id } : { id: line.id }, query: dry ? { dry_run: true } : {} });
  const noun = open.length === 1 ? what.slice(0, -1) : what;
  return {
    verb: "Cancel", object: `${count(open.length)} ${noun}`, kind: "wide", danger: true, confirm: `cancel ${open.length}`,
    disabled: open.length === 0 ? `none of the selected ${what} is open` : open.length > MOST ? `at most ${MOST} at once` : undefined,
    command: open.length === 1 ? `muster cancel ${open[0]?.id}${what === "runs" ? " --tree" : ""}` : undefined,
    consequence: async () => {
      const said = await each(open, async (line) => (await send(addressFor(line, true), { method: "POST", headers: { "content-type": "application/json" }, body: "{}" })).json() as Promise<object>);
      const refused = said.filter((one): one is Problem => one instanceof Problem);
      if (refused.length === open.length && refused[0]) throw refused[0];
      return <Listed lines={open} said={said} left={lines.length - open.length} />;
    },
    run: async (key) => {
      const said = await each(open, (line) => send(addressFor(line, false), { method: "POST", headers: { "content-type": "application/json", "idempotency-key": `${key}.${line.id}`.slice(0, 128) }, body: "{}" }));
      const refused = said.filter((one): one is Problem => one instanceof Problem);
      if (refused.length === open.length && refused[0]) throw refused[0];
      const receipt = `cancelled ${count(open.length - refused.length)} ${noun}`;
      return refused.length > 0 ? new Partly(<>{receipt}; {count(refused.length)} not: {refused[0]?.message}</>) : receipt;
    },
  };
}

/** Every line that is touched, by name. */
function Listed({ lines, said, left }: { lines: readonly Line[]; said: readonly (object | Problem)[]; left: number }): ReactNode {
  return (
    <>
      <p className="mb-2">This cancels, with everything that they called and that is still open:</p>
      <ul className="m-0 max-h-[40vh] list-none overflow-auto border-y border-border p-0" tabIndex={0} aria-label="what is cancelled">
        {lines.map((line, index) => {
          const answer = said[index];
          return (
            <li key={line.id} className="flex min-h-7 items-center gap-2">
              <StateMark state={line.state} compact /><span className="truncate text-text"><Plain text={line.name} /></span><Id id={line.id} plain />
              {answer instanceof Problem && <span className="text-fail">{answer.message}</span>}
            </li>
          );
        })}
      </ul>
      {left > 0 && <p className="mt-2">{count(left)} of the selected have ended and stay as they are.</p>}
    </>
  );
}

/** Does it for each, a few at a time; a failure of one stops no other. */
async function each<T>(lines: readonly Line[], does: (line: Line) => Promise<T>): Promise<(T | Problem)[]> {
  const said: (T | Problem)[] = [];
  let next = 0;
  const work = async () => {
    for (let at = next++; at < lines.length; at = next++) {
      try {
        said[at] = await does(lines[at] as Line);
      } catch (error) {
        said[at] = Problem.of(error);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return said;
}
