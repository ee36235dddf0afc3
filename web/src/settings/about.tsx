// What this is, and whose work is in it: every package of the page with its licence, as installed
// when it was built.
import { useState } from "react";
import LICENCES from "virtual:licences";
import { useGet } from "@/api/queries";
import { count } from "@/look/format";
import { useLiveState } from "@/live/stream";
import { CommandLine } from "@/parts/says";
import { Unknown } from "@/parts/values";

export default function About() {
  const health = useGet("/api/v1/health");
  const { lastFrameAt } = useLiveState();
  const [wanted, setWanted] = useState("");
  const text = wanted.trim().toLowerCase();
  const shown = LICENCES.filter((one) => text === "" || one.name.includes(text) || one.licence.toLowerCase().includes(text));
  return (
    <div className="flex flex-col gap-4">
      <p>
        Muster {health.data ? <b>{health.data.version}</b> : <Unknown reason={health.error?.message ?? "not told yet"} />}
        <span className="text-text-2"> · the plane and this page are one binary; nothing is loaded from elsewhere{lastFrameAt === 0 && "; the stream is not open"}</span>
      </p>
      <p className="flex flex-wrap items-center gap-2"><a className="text-accent underline underline-offset-2" href="/docs">The API</a><CommandLine command="muster doctor" /></p>
      <section aria-labelledby="licences" className="flex flex-col gap-2">
        <h2 id="licences">Whose work is in this page · {count(LICENCES.length)} packages</h2>
        <p className="text-text-2">The Rust packages of the binary, with their licences: <code>cargo deny list</code> in its sources.</p>
        <input className="field w-56" type="search" aria-label="Packages or licences that contain" placeholder="package or licence" value={wanted} onChange={(event) => setWanted(event.target.value)} />
        <ul>
          {shown.map((one) => (
            <li key={`${one.name} ${one.version}`} className="border-t border-border">
              <details>
                <summary className="flex min-h-7 cursor-pointer flex-wrap items-center gap-x-3"><b className="font-semibold">{one.name}</b> <span className="text-text-3">{one.version}</span> <span className="text-text-2">{one.licence}</span></summary>
                <pre className="mb-2 max-h-72 overflow-auto rounded-sm bg-sunken p-2 whitespace-pre-wrap" tabIndex={0}>{one.text || "It comes without a text of its licence."}</pre>
              </details>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
