// Endpoints of language models: whether calls that need one are let through, and since when not.
import { useGet } from "@/api/queries";
import { count } from "@/look/format";
import { Plain } from "@/parts/plain";
import { ErrorPanel } from "@/parts/says";
import { StateMark } from "@/parts/state-mark";
import { Age, Lasting } from "@/parts/values";

/** A closed circuit lets through, an open one refuses: the words alone would mislead. */
const DRAWN: Record<string, string> = { closed: "online", open: "down", half_open: "degraded" };

export function Circuits() {
  const said = useGet("/api/v1/llm-circuits", {}, { refetchInterval: 10_000 });
  if (said.error && !said.data) return <ErrorPanel error={said.error} what="LLM circuits" retry={() => void said.refetch()} />;
  if (!said.data) return null;
  const { enabled, circuits } = said.data;
  return (
    <section aria-labelledby="circuits" className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-3">
        <h2 id="circuits">LLM endpoints</h2>
        {!enabled && <span className="text-text-2">not checked: <code>llm_health.enabled</code> is off</span>}
        {enabled && circuits.length === 0 && <span className="text-text-2">checked, and none is configured</span>}
      </div>
      {circuits.length > 0 && (
        <ul className="border-t border-border">
          {circuits.map((circuit) => (
            <li key={circuit.endpoint} className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-border py-1">
              <b className="font-semibold">{circuit.endpoint}</b>
              <StateMark state={DRAWN[circuit.state] ?? circuit.state} evidence={`circuit ${circuit.state.replace("_", " ")}`} />
              <span className="text-text-2">circuit {circuit.state.replace("_", " ")}{circuit.opened_at && <> <Lasting at={circuit.opened_at} /></>}</span>
              {circuit.failures > 0 && <span className="text-wait">{count(circuit.failures)} bad checks in a row</span>}
              {circuit.error && <span className="min-w-0 text-text-2"><Plain text={circuit.error} /></span>}
              <span className="text-text-3">checked <Age at={circuit.checked_at} reason="not checked yet" />{circuit.next_check_at && <>, again <Age at={circuit.next_check_at} due /></>}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
