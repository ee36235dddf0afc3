// What stands above every page, most serious first: hold, doubting ourselves, disk, offline, and a
// plane that has become another version than this page.
import type { Need, Overview } from "@/api/shapes";
import { reconnectNow, useLiveState } from "@/live/stream";
import { Banner, type BannerTone } from "@/parts/banner";
import { BY_UNKNOWN, HeldWords } from "@/parts/held";
import { Said } from "@/parts/said";
import { Age, Time } from "@/parts/values";
import { Link, below, usePath } from "@/router";
import { bannersOf } from "./needs";

const TONES: Record<string, BannerTone> = { hold: "neutral", doubt: "wait", disk: "fail" };
const NEXT: Record<string, string> = { hold: "What is held", doubt: "The fleet", disk: "The store" };

/** Pages that say it themselves, with what can be done: the banner would say the same twice. */
const SAID_BY: Record<string, readonly string[]> = { hold: ["/", "/health"], doubt: ["/", "/fleet"], disk: ["/"] };

export function Banners({ overview }: { overview: Overview | undefined }) {
  const at = usePath();
  const { live, told } = useLiveState();
  const other = told.version !== undefined && told.first !== undefined && told.version !== told.first;
  return (
    <>
      {bannersOf(overview).filter((need) => !SAID_BY[need.kind]?.includes(at)).map((need) => <NeedBanner key={need.kind + need.id} need={need} />)}
      {live.state === "offline" && (
        <Banner tone="fail" act={<button type="button" className="button button-compact" onClick={reconnectNow}>Try now</button>}>
          The plane does not answer since <Time at={live.since} />. What you see is as it was then; acts wait.
        </Banner>
      )}
      {other && (
        <Banner tone="neutral" shape="arrow" act={<button type="button" className="button button-compact" onClick={() => location.reload()}>Reload</button>}>
          The plane is now version {told.version}; this page is from {told.first}. Reload to use the new one.
        </Banner>
      )}
    </>
  );
}

export function NeedBanner({ need }: { need: Need }) {
  return (
    <Banner tone={TONES[need.kind] ?? "wait"} shape={need.kind === "hold" ? "bars" : undefined} act={<Link to={below(need.path)} className="text-accent underline">{NEXT[need.kind] ?? "Show"}</Link>}>
      <Said text={need.text} /> {need.since ? <span className="text-text-2"><Age at={need.since} /></span> : need.kind === "hold" && <span className="text-text-2">· held <HeldWords hold={{ by: need.by, since: null, by_unknown: BY_UNKNOWN }} /></span>}
    </Banner>
  );
}
