// What could not be handled and was set aside: what it was, why, and dropping it once understood.
import { useState } from "react";
import { act } from "@/api/client";
import { queries, useGet } from "@/api/queries";
import { count } from "@/look/format";
import { ActButton } from "@/parts/act";
import { Plain } from "@/parts/plain";
import { ErrorPanel } from "@/parts/says";
import { Age, Id } from "@/parts/values";

const LIMIT = 100;
const refresh = () => void queries.invalidateQueries({ predicate: ({ queryKey }) => /quarantine|health/.test(String(queryKey[0])) });

export function Quarantine() {
  const set = useGet("/api/v1/quarantine", { query: { limit: LIMIT } });
  const [open, setOpen] = useState<string>();
  if (set.error && !set.data) return <ErrorPanel error={set.error} what="the quarantine" retry={() => void set.refetch()} />;
  if (!set.data) return null;
  const { items } = set.data;
  return (
    <section aria-labelledby="quarantine" className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-3">
        <h2 id="quarantine">Quarantine</h2>
        <span className="text-text-2">{items.length === 0 ? "nothing was set aside" : `${items.length === LIMIT ? "≥ " : ""}${count(items.length)} set aside; their senders were told`}</span>
      </div>
      {items.length > 0 && (
        <ul className="border-t border-border">
          {items.map((item) => (
            <li key={item.id} className="border-b border-border py-1">
              <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
                <code>{item.kind}</code>
                <Id id={item.id} />
                <span className="min-w-0 text-fail"><Plain text={item.error} /></span>
                <span className="text-text-3"><Age at={item.at} /></span>
                <span className="ml-auto flex items-center gap-2">
                  <button type="button" className="button button-compact" aria-expanded={open === item.id} onClick={() => setOpen(open === item.id ? undefined : item.id)}>Show</button>
                  <ActButton compact act={{
                    verb: "Drop", kind: "wide", danger: true, scope: "operate", confirm: item.id.slice(-6), object: item.id, command: `muster quarantine drop ${item.id}`,
                    consequence: () => Promise.resolve(`It is removed for good: ${item.about}.`),
                    run: async (key) => {
                      await act("post", "/api/v1/quarantine/{id}/drop", { path: { id: item.id }, key });
                      refresh();
                      return "dropped";
                    },
                  }} />
                </span>
              </div>
              {open === item.id && (
                <div className="flex flex-col gap-1 py-2 pl-4">
                  <p>about <Plain text={item.about || "nothing that it names"} /></p>
                  <pre className="max-h-64 overflow-auto rounded-sm border border-border bg-sunken p-2" tabIndex={0} aria-label="What was set aside"><Plain text={item.what} lines /></pre>
                </div>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
