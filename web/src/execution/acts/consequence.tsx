// What an act would do, as the plane says it: a sentence, what it touches, what it leaves alone.
import { count } from "@/look/format";
import { late } from "@/parts/late";
import { Plain } from "@/parts/plain";
import { StateMark } from "@/parts/state-mark";
import { Id } from "@/parts/values";
import type { ActConsequence } from "../shapes";

/** So many of what is touched are named; the rest is counted. */
const NAMED = 12;

export function Consequence({ would }: { would: ActConsequence }) {
  const named = would.affected.slice(0, NAMED);
  return (
    <div className="flex flex-col gap-2">
      <p><Plain text={would.text} /></p>
      {named.length > 1 && (
        <ul className="max-h-48 overflow-auto border-t border-border pt-1">
          {named.map((each) => (
            <li key={each.execution_id} className="flex items-center gap-2 py-0.5">
              <StateMark state={each.state} compact />
              <span className="min-w-0 flex-1 truncate font-mono text-xs"><Plain text={each.target} /></span>
              <Id id={each.execution_id} plain />
            </li>
          ))}
          {would.total > named.length && <li className="text-text-3">and {count(would.total - named.length)} more</li>}
        </ul>
      )}
      {would.told.length > 0 && <p className="text-text-2">Told: <Plain text={would.told.join(", ")} /></p>}
      {would.undo && <p className="text-text-2">Taken back by: <code><Plain text={would.undo} /></code></p>}
    </div>
  );
}

/** The form of a restart; loaded when somebody opens it. */
export const RestartForm = late(() => import("./restart-form"), <p className="text-text-3">Asking what would run again</p>);
