// How old what one sees is: five states of the stream, with the age of its last frame. `l` pauses.
import { useEffect, useRef } from "react";
import { planeNow, useSecond } from "@/live/clock";
import { type LiveState, reconnectNow, setPaused, useLiveState } from "@/live/stream";
import { useDisplay } from "@/look/display";
import { count, span, time } from "@/look/format";
import { announce } from "@/parts/say";
import { useKeys } from "./keys";

/** What the indicator says. `age` is that of the last frame, in milliseconds; undefined: none yet. */
export function sayLive(live: LiveState, age: number | undefined, clock: (at: number) => string): { sign: string; text: string; short: string; tone: string } {
  const old = age === undefined ? "no data yet" : `data ${span(age)} old`;
  switch (live.state) {
    case "live":
      return { sign: "●", text: `Live ${age === undefined ? "" : age < 1000 ? "now" : span(age)}`, short: age === undefined ? "Live" : age < 1000 ? "now" : span(age), tone: "text-text-2" };
    case "paused":
      return { sign: "‖", text: `Paused, ${count(live.held)} held`, short: `${count(live.held)} held`, tone: "text-wait" };
    case "reconnecting":
      return age === undefined
        ? { sign: "◌", text: "Connecting", short: "Connecting", tone: "text-text-2" }
        : { sign: "◌", text: `Reconnecting, ${old}`, short: `${span(age)} old`, tone: "text-wait" };
    case "offline":
      return { sign: "✕", text: `Offline since ${clock(live.since)}`, short: "Offline", tone: "text-fail" };
    case "resynced":
      return { sign: "↺", text: live.why === "reconnected" ? "Resynced after a break" : "Resynced after a gap", short: "Resynced", tone: "text-text-2" };
  }
}

export function LiveIndicator() {
  const { live, lastFrameAt } = useLiveState();
  useSecond();
  const toggle = () => {
    if (live.state === "paused") setPaused(false);
    else if (live.state === "offline" || live.state === "reconnecting") reconnectNow();
    else setPaused(true);
  };
  useKeys([{ key: "l", does: live.state === "paused" ? "go on live" : "pause what arrives", run: toggle }]);
  const before = useRef(live.state);
  useEffect(() => {
    if (before.current === live.state) return;
    const lost = live.state === "offline";
    if (lost || before.current === "offline") announce(lost ? "The plane does not answer." : "Connected to the plane again.");
    before.current = live.state;
  }, [live.state]);
  const does = live.state === "paused" ? "Go on (l)" : live.state === "live" || live.state === "resynced" ? "Pause what arrives (l)" : "Try now (l)";
  return <LiveShown live={live} lastFrameAt={lastFrameAt} onClick={toggle} does={does} />;
}

export function LiveShown({ live, lastFrameAt, onClick, does }: { live: LiveState; lastFrameAt: number; onClick?: () => void; does?: string }) {
  const { clock } = useDisplay();
  const age = lastFrameAt ? Math.max(0, planeNow() - lastFrameAt) : undefined;
  const { sign, text, short, tone } = sayLive(live, age, (at) => time(at, clock, planeNow()));
  return (
    <button type="button" className={`live inline-flex min-h-7 items-center gap-1.5 whitespace-nowrap rounded-sm px-1 hover:bg-hover ${tone}`} data-live={live.state} title={does} onClick={onClick}>
      <span aria-hidden>{sign}</span>
      <span className="hidden min-w-[60px] text-left sm:inline-block">{text}</span>
      <span className="min-w-[28px] text-left sm:hidden"><span className="visually-hidden">{text}</span><span aria-hidden>{short}</span></span>
    </button>
  );
}
