// What an agent reported about tokens and cost of one execution, as it reported it: sums of ours
// are elsewhere. Keys that this page does not know are shown by their names.
import { count } from "@/look/format";
import { Plain } from "@/parts/plain";
import { Unknown } from "@/parts/values";

const NAMES: Record<string, string> = {
  total_input_tokens: "input tokens", total_output_tokens: "output tokens", total_tokens: "tokens", total_cost_usd: "cost, USD",
};

export function UsageTable({ usage }: { usage: unknown }) {
  const said = usage && typeof usage === "object" && !Array.isArray(usage) ? (usage as Record<string, unknown>) : { usage };
  const entries = Array.isArray(said.entries) ? said.entries.filter((each): each is Record<string, unknown> => each !== null && typeof each === "object") : [];
  const sums = Object.entries(said).filter(([key]) => key !== "entries");
  return (
    <section aria-label="Usage" className="border-t border-border px-3 py-2">
      <h3 className="text-xs font-semibold">Usage <span className="font-normal text-text-3">as the agent reported it</span></h3>
      <dl className="mt-1 grid grid-cols-[auto_1fr] gap-x-4 text-text-2">
        {sums.map(([key, value]) => (
          <div key={key} className="contents"><dt><Plain text={NAMES[key] ?? key.replaceAll("_", " ")} /></dt><dd><Said value={value} /></dd></div>
        ))}
      </dl>
      {entries.length > 0 && (
        <table className="mt-1 w-full border-collapse text-xs">
          <thead>
            <tr className="border-b border-border text-text-3"><th scope="col">Model</th><th scope="col" className="text-right">In</th><th scope="col" className="text-right">Out</th><th scope="col" className="text-right">Cost, USD</th></tr>
          </thead>
          <tbody>
            {entries.map((entry, index) => (
              <tr key={index}>
                <td><Said value={entry.model} /></td>
                <td className="text-right"><Said value={entry.input_tokens} /></td>
                <td className="text-right"><Said value={entry.output_tokens} /></td>
                <td className="text-right"><Said value={entry.cost_usd} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Said({ value }: { value: unknown }) {
  if (value === null || value === undefined) return <Unknown reason="the agent did not say" />;
  if (typeof value === "number") return <>{Number.isInteger(value) ? count(value) : String(value)}</>;
  return <Plain text={typeof value === "string" ? value : JSON.stringify(value)} />;
}
