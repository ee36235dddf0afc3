// The rail: places, with a count only where somebody is needed; at its foot which plane this is.
// Icons alone on narrow screens, a bar at the bottom of a phone.
import { useRef, useState } from "react";
import { useGet } from "@/api/queries";
import type { Overview } from "@/api/shapes";
import { useDisplay } from "@/look/display";
import { Popover } from "@/parts/layer";
import { Num } from "@/parts/values";
import { Link, usePath } from "@/router";
import { countOf } from "./needs";
import { Icon, PLACES, type Place, isIn } from "./places";

export function Rail({ overview, settled }: { overview: Overview | undefined; settled: boolean }) {
  const path = usePath();
  return (
    <nav aria-label="Places" className="rail">
      <Link to="/" className="rail-name" title="Overview">
        <svg width="18" height="18" viewBox="0 0 16 16" aria-hidden><path fill="var(--accent)" d="M1 14V2l7 6 7-6v12h-3V8l-4 4-4-4v6z" /></svg>
        <span className="rail-text font-semibold">Muster</span>
      </Link>
      <ul className="rail-places">
        {PLACES.map((place) => <li key={place.to} className={place.phone ? "" : "rail-more"}><RailLink place={place} path={path} overview={overview} /></li>)}
        <li className="rail-phone"><More path={path} overview={overview} /></li>
      </ul>
      <Foot settled={settled} />
    </nav>
  );
}

function RailLink({ place, path, overview }: { place: Place; path: string; overview: Overview | undefined }) {
  const { count, atLeast } = countOf(overview, place.to);
  const { keys } = useDisplay();
  return (
    <Link to={place.to} className="rail-link" aria-current={isIn(path, place.to) ? "page" : undefined} title={keys ? `${place.name} (g ${place.key})` : place.name}>
      <Icon>{place.icon}</Icon>
      <span className="rail-text">{place.name}</span>
      {count > 0 && <span className="rail-count" title={`${atLeast ? "at least " : ""}${count} need somebody`}><Num value={count} atLeast={atLeast} /><span className="visually-hidden"> need somebody</span></span>}
    </Link>
  );
}

/** On a phone: the places that have no room in the bar. */
function More({ path, overview }: { path: string; overview: Overview | undefined }) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const rest = PLACES.filter((place) => !place.phone);
  const inside = rest.some((place) => isIn(path, place.to));
  return (
    <>
      <button ref={button} type="button" className="rail-link w-full" aria-haspopup="dialog" aria-expanded={open} aria-current={inside ? "true" : undefined} onClick={() => setOpen(!open)}>
        <Icon><path d="M4 9h.01M9 9h.01M14 9h.01" strokeWidth="3" strokeLinecap="round" /></Icon>
        <span className="rail-text">More</span>
      </button>
      {open && (
        <Popover anchor={button} close={() => setOpen(false)} label="More places" className="min-w-[200px]">
          <div onClick={() => setOpen(false)}>
            {rest.map((place) => <RailLink key={place.to} place={place} path={path} overview={overview} />)}
          </div>
        </Popover>
      )}
    </>
  );
}

/** Which plane this is: its address, version, store and durability. */
function Foot({ settled }: { settled: boolean }) {
  const { data } = useGet("/api/v1/health", {}, { enabled: settled, staleTime: 60_000 });
  const store = data?.store;
  return (
    <Link to="/health" className="rail-foot" title={data ? `${location.host}, store ${store?.place}` : undefined}>
      <span className="truncate font-semibold text-text-2">{data?.name ?? location.host}</span>
      {data && <span className="truncate">muster {data.version}</span>}
      {store && <span className="truncate">{store.kind}, durability {store.durability}</span>}
    </Link>
  );
}
