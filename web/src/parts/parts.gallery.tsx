// The small parts: states, values, banners, charts, what a panel says.
import { Problem } from "@/api/problem";
import type { Need } from "@/api/shapes";
import type { Gallery } from "@/gallery/gallery";
import { planeNow } from "@/live/clock";
import type { LiveState } from "@/live/stream";
import { LiveShown } from "@/shell/indicator";
import { NeedBanner } from "@/shell/banners";
import { Banner } from "./banner";
import { Bars, Histogram, Sparkline, SplitBar } from "./charts";
import { keyText } from "./key-hint";
import { CommandLine, EmptyState, ErrorPanel, Skeleton } from "./says";
import { StateMark } from "./state-mark";
import { Age, Id, Num, Took } from "./values";

const WORDS = [
  "queued", "running", "absorbed", "waiting", "paused", "hold", "succeeded", "failed", "cancelled", "timeout", "online", "active", "suspect", "degraded",
  "unknown", "unreachable", "connecting", "draining", "down", "lost", "exited", "retired", "flapping", "unreachable_callback", "drift", "haunted", null,
];
const ago = (ms: number) => planeNow() - ms;
const live: [LiveState, number][] = [
  [{ state: "live" }, 1_000], [{ state: "paused", held: 41 }, 2_000], [{ state: "reconnecting", since: 0 }, 14_000], [{ state: "offline", since: Date.UTC(2026, 10, 29, 14, 2, 11) }, 60_000], [{ state: "resynced", why: "gap" }, 500],
];
const need = (kind: Need["kind"], text: string): Need => ({ kind, id: kind, state: kind, text, since: new Date(ago(7_200_000)).toISOString(), path: "/queues" });
const series = Array.from({ length: 60 }, (_, n) => (n > 20 && n < 28 ? null : Math.round(30 + 20 * Math.sin(n / 6))));
const durations = Array.from({ length: 400 }, (_, n) => ({ ms: 20 + ((n * 7919) % 900) ** 1.4, failed: n % 19 === 0 }));

const gallery: Gallery = {
  title: "Parts",
  states: [
    { name: "StateMark", show: () => <div className="grid grid-cols-2 gap-1">{WORDS.map((word) => <StateMark key={word} state={word} evidence="made up" />)}<StateMark state="failed" doubtful /><span className="flex gap-2"><StateMark state="running" compact /><StateMark state="failed" compact /></span></div> },
    { name: "values", show: () => <div className="flex flex-col items-start gap-1"><Age at={ago(500)} /><Age at={ago(12_000)} /><Age at={ago(8_460_000)} /><Age at={ago(-9_000)} /><Age at={ago(2_000)} due /><Age at={null} reason="never heard" /><Took ms={1240} /><Took from={ago(61_000)} /><Num value={1204} /><Num value={null} reason="the node does not say" /><Num value={null} last={5} reason="last heard 2 h ago" /><Num value={10_000} atLeast /><Id id="exec_01M8NE8YXTEHJRX7D5M37K2F9Q" /><Id id="nightly-2026-11-29" /></div> },
    { name: "LiveIndicator", show: () => <div className="flex flex-col items-start gap-1">{live.map(([state, age]) => <LiveShown key={state.state} live={state} lastFrameAt={ago(age)} />)}<LiveShown live={{ state: "reconnecting", since: 0 }} lastFrameAt={0} /></div> },
    { name: "Banner", show: () => <div><NeedBanner need={need("hold", "Dispatching is stopped by ci-bot: deploy")} /><NeedBanner need={need("doubt", "7 of 12 nodes fell silent; verdicts are shown, nothing acts")} /><NeedBanner need={need("disk", "The disk has 0.9 GiB free, below its reserve")} /><Banner tone="fail" act={<button type="button" className="button button-compact">Try now</button>}>The plane does not answer since 14:02:11.</Banner><Banner tone="neutral" shape="arrow" act={<button type="button" className="button button-compact">Reload</button>}>The plane is now version 0.2.0; this page is from 0.1.0.</Banner></div> },
    { name: "Sparkline", show: () => <div className="flex items-center gap-2"><Sparkline values={series} unit="started" /> 38/min<Sparkline values={[null, null]} unit="ended" /> —</div> },
    { name: "Bars", show: () => <Bars label="failures" items={[{ id: "a", name: "agent_error", value: 9, to: "/runs" }, { id: "b", name: "agent_timeout", value: 2, colour: "var(--time)" }]} /> },
    { name: "SplitBar", show: () => <SplitBar label="28 steps" parts={[{ state: "succeeded", count: 20, colour: "var(--ok)", pattern: "thin" }, { state: "running", count: 6, colour: "var(--run)" }, { state: "waiting", count: 4, colour: "var(--wait)", pattern: "double" }, { state: "queued", count: 1, colour: "var(--neutral)", pattern: "outline" }, { state: "failed", count: 1, colour: "var(--fail)" }]} /> },
    { name: "Histogram", show: () => <Histogram durations={durations} /> },
    { name: "CommandLine, EmptyState", show: () => <EmptyState command={`muster call hello.greet --input '{"name":"world"}'`}>Nothing has been called yet.</EmptyState> },
    { name: "ErrorPanel", show: () => <div className="flex flex-col gap-2"><ErrorPanel what="the list" error={new Problem("overloaded", "too many requests wait", 503, { retryAfterMs: 8_000, hint: "come back soon" })} retry={() => {}} /><ErrorPanel error={new Problem("offline", "the plane did not answer", 0)} /></div> },
    { name: "Skeleton", show: () => <Skeleton what="made-up rows" rows={3} /> },
    { name: "KeyHint", show: () => <span className="flex flex-wrap gap-3">{["Shift+R", "g r", "Ctrl+K", "Escape", "x"].map((key) => <kbd key={key}>{keyText(key)}</kbd>)}<CommandLine command="muster why run_…" /></span> },
  ],
};
export default gallery;
