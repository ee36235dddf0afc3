// Every effective value of the plane's configuration, and where it came from. Secrets are not in
// the answer, so none can be here.
import { useState } from "react";
import { useGet } from "@/api/queries";
import { CommandLine, ErrorPanel, Skeleton } from "@/parts/says";
import { Plain } from "@/parts/plain";
import { matching, shownOf } from "./values";

export default function Configuration() {
  const [wanted, setWanted] = useState("");
  const [changed, setChanged] = useState(false);
  const config = useGet("/api/v1/config");
  if (config.error && !config.data) return <ErrorPanel error={config.error} what="the configuration" retry={() => void config.refetch()} />;
  if (!config.data) return <Skeleton what="the configuration" />;
  const values = matching(config.data.values, wanted, changed);
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-center gap-3">
        <input className="field w-56" type="search" placeholder="key or value" aria-label="Keys or values that contain" value={wanted} onChange={(event) => setWanted(event.target.value)} />
        <label className="flex min-h-6 items-center gap-2 text-text-2"><input type="checkbox" checked={changed} onChange={(event) => setChanged(event.target.checked)} /> only what is not the default</label>
        <CommandLine command="muster server --print-config" />
      </div>
      {values.length === 0 ? <p className="text-text-2">0 of {config.data.values.length} match.</p> : (
        <table className="w-full border-collapse">
          <caption className="visually-hidden">Configuration</caption>
          <thead className="text-left text-xs text-text-3"><tr><th className="py-1 pr-3">KEY</th><th className="pr-3">VALUE</th><th>FROM</th></tr></thead>
          <tbody>
            {values.map((one) => (
              <tr key={one.key} className="border-t border-border align-baseline">
                <th scope="row" className="py-1 pr-3 font-normal"><code className="break-all">{one.key}</code></th>
                <td className="py-1 pr-3"><code className="break-all"><Plain text={shownOf(one.value)} /></code>{one.note && <p className="text-text-2"><Plain text={one.note} /></p>}</td>
                <td className={`py-1 ${one.source === "default" ? "text-text-3" : ""}`} title={one.place}>{one.source}{one.place && <span className="block text-xs break-all text-text-3"><Plain text={one.place} /></span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
