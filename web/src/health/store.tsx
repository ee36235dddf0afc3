// The store: how large, how fast it grows, how long until the disk is full. A bar for its parts,
// with the sizes as text.
import type { components } from "muster-openapi";
import { bytes, count } from "@/look/format";
import { Unknown } from "@/parts/values";
import { partsOf } from "./duties";

type StoreShown = components["schemas"]["StoreShown"];

const NAMES: Record<string, string> = { decisions: "decisions", payloads: "large payloads and memory", logs: "logs and notes", wal: "not yet written back" };
const FILLS = ["painted bg-text-2", "painted bg-line", "painted bg-border", "painted hatched border border-border"];

export function Store({ store }: { store: StoreShown }) {
  const { parts, total } = partsOf(store.bytes as Record<string, number>);
  const { growth_bytes_per_day: growth, days_until_full: days, free_bytes: free, disk_bytes: disk } = store;
  return (
    <section aria-labelledby="store" className="flex flex-col gap-2">
      <h2 id="store">Store</h2>
      <p>
        <b>{bytes(total)}</b>{" "}
        {growth === null || growth === undefined ? <span className="text-text-2">growth <Unknown reason="it is known after an hour of running" /> <span className="text-text-3">known after an hour</span></span>
          : <span>{growth >= 0 ? "+" : "−"}{bytes(Math.abs(growth))} a day</span>}
        {days !== null && days !== undefined ? <b className={days < 7 ? "text-fail" : days < 30 ? "text-wait" : undefined}>, {count(Math.floor(days))} d to full</b> : growth !== null && growth !== undefined && <span className="text-text-2">, it does not grow</span>}
      </p>
      <div aria-hidden className="flex h-3 w-full gap-px">
        {parts.map(([name, size], index) => <span key={name} className={`min-w-[2px] ${FILLS[Math.min(index, FILLS.length - 1)]}`} style={{ flexGrow: size, flexBasis: 0 }} title={`${name} ${bytes(size)}`} />)}
      </div>
      <dl className="grid grid-cols-[max-content_max-content] gap-x-4 gap-y-1">
        {parts.map(([name, size], index) => (
          <div key={name} className="contents">
            <dt className="flex items-center gap-2 text-text-2"><span aria-hidden className={`inline-block h-[10px] w-[10px] ${FILLS[Math.min(index, FILLS.length - 1)]}`} />{NAMES[name] ?? name}</dt>
            <dd className="text-right" title={`${count(size)} bytes`}>{bytes(size)}</dd>
          </div>
        ))}
      </dl>
      <p className="text-text-2">
        {store.kind}, {store.place}, durability {store.durability}, format {store.format}
      </p>
      <p className="text-text-2">
        disk {free === null || free === undefined ? <Unknown reason="the system does not tell" /> : <>{bytes(free)} free{disk ? ` of ${bytes(disk)}` : ""}</>}
        {store.reserve_bytes ? <>; below {bytes(store.reserve_bytes)} new work is refused</> : null}
      </p>
    </section>
  );
}
