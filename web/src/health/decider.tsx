// Who decides, how busy it is, and whether something waits longer than it should.
import type { ReactNode } from "react";
import type { components } from "muster-openapi";
import { useGet } from "@/api/queries";
import { useLiveState } from "@/live/stream";
import { bytes, count } from "@/look/format";
import { Age, Took, Unknown } from "@/parts/values";

export function Decider({ health }: { health: components["schemas"]["Health"] }) {
  const system = useGet("/api/v1/system", {}, { refetchInterval: 15_000 });
  const { lastFrameAt } = useLiveState();
  const { driver } = health;
  const plane = system.data;
  const reason = system.error ? system.error.message : "not told yet";
  const rows: [string, ReactNode][] = [
    ["decides", "this plane"],
    ["last turned", <Age key="t" at={driver.turned_at} />],
    ["commit", driver.committing_ms === null || driver.committing_ms === undefined ? "none under way" : <>under way for <Took ms={driver.committing_ms} /></>],
    ["event lag", `${count(driver.inbox)} wait`],
    ["requests that wait", count(driver.waiting_requests)],
    ["this page’s stream", lastFrameAt > 0 ? <>last frame <Age key="s" at={lastFrameAt} /></> : <Unknown key="s" reason="no frame came yet" />],
    ["rebuilt while running", count(driver.restored)],
    ["process", plane ? `${plane.platform}, pid ${plane.pid}, ${count(plane.cpus)} cores` : <Unknown key="p" reason={reason} />],
    ["memory", plane?.process.memory_bytes != null ? bytes(plane.process.memory_bytes) : <Unknown key="m" reason={reason} />],
    ["open files", plane?.process.open_fds != null ? `${count(plane.process.open_fds)}${plane.process.max_fds != null ? ` of ${count(plane.process.max_fds)}` : ""}` : <Unknown key="f" reason={reason} />],
    ["listens on", plane ? plane.listeners.join(", ") : <Unknown key="l" reason={reason} />],
  ];
  return (
    <section aria-labelledby="decider" className="flex flex-col gap-2">
      <h2 id="decider">Decider</h2>
      <dl className="grid grid-cols-[max-content_1fr] gap-x-4 gap-y-1">
        {rows.map(([name, value]) => <div key={name} className="contents"><dt className="text-text-3">{name}</dt><dd className="min-w-0">{value}</dd></div>)}
      </dl>
    </section>
  );
}
