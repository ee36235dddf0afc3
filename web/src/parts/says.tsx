// What a panel says when it has nothing to show: loading, empty, failed, out of date. Each says
// what to do next.
import { Component, type ReactNode, useEffect, useState } from "react";
import { Problem } from "@/api/problem";
import { useSecond } from "@/live/clock";
import { span } from "@/look/format";
import { Link, currentPath } from "@/router";
import { Time, useCopy } from "./values";

/** A command to copy. */
export function CommandLine({ command }: { command: string }) {
  const [copied, copy] = useCopy();
  return (
    <span className="inline-flex max-w-full items-center gap-2 rounded-sm border border-border bg-sunken px-2 py-1">
      <code className="overflow-x-auto whitespace-pre text-text" tabIndex={0}>{command}</code>
      <button type="button" className="text-xs text-accent hover:underline" onClick={() => copy(command)} aria-label={`Copy ${command}`}>
        {copied ? "copied" : "copy"}
      </button>
    </span>
  );
}

/** One sentence, and the exact command that changes it. */
export function EmptyState({ children, command }: { children: ReactNode; command?: string }) {
  return (
    <div className="flex flex-col items-start gap-3 p-4 text-text-2">
      <p>{children}</p>
      {command && <CommandLine command={command} />}
    </div>
  );
}

/** Rows in their final geometry: after 150 ms, without motion; after 2 s it names the request. */
export function Skeleton({ rows = 6, what }: { rows?: number; what: string }) {
  const [phase, setPhase] = useState(0);
  useEffect(() => {
    const first = setTimeout(() => setPhase(1), 150);
    const second = setTimeout(() => setPhase(2), 2000);
    return () => {
      clearTimeout(first);
      clearTimeout(second);
    };
  }, []);
  return (
    <div role="status" aria-label={`loading ${what}`} className="p-2" style={{ minHeight: `calc(var(--row) * ${rows})` }}>
      {phase > 0 && Array.from({ length: rows }, (_, index) => (
        <div key={index} className="flex items-center" style={{ height: "var(--row)" }}>
          <div className="h-3 rounded-sm bg-border opacity-60" style={{ width: `${35 + ((index * 37) % 50)}%` }} />
        </div>
      ))}
      {phase > 1 && <Waiting what={what} />}
    </div>
  );
}

/** What is waited for, and for how long. */
function Waiting({ what }: { what: string }) {
  const [since] = useState(() => performance.now() - 2000);
  useSecond();
  return <p className="text-xs text-text-3">still waiting for {what}, asked {span(performance.now() - since)} ago</p>;
}

/** A failure, in its panel only. Counts down to when to come back. */
export function ErrorPanel({ error, retry, what }: { error: unknown; retry?: () => void; what?: string }) {
  const problem = Problem.of(error);
  const [since] = useState(() => performance.now());
  useSecond();
  const left = problem.detail.retryAfterMs === undefined ? 0 : problem.detail.retryAfterMs - (performance.now() - since);
  return (
    <div role="alert" className="flex flex-col items-start gap-1 border-l-2 border-fail bg-tint-fail p-3">
      <p>
        <code className="text-fail">{problem.category}</code> {what && <span>{what}: </span>}
        <span>{problem.message}</span>
      </p>
      {problem.detail.hint && <p className="text-text-2">{problem.detail.hint}</p>}
      {problem.offline && <div className="flex flex-wrap items-center gap-2 text-text-2">It is asked again when the plane is back. Is it running? <CommandLine command="muster doctor" /></div>}
      {problem.needsKey && <p className="text-text-2"><Link className="text-accent underline" to={`/login?next=${encodeURIComponent(currentPath() + location.search)}`}>Sign in</Link> with a key that {problem.detail.needs ? <>has the scope {problem.detail.needs}</> : "may"}.</p>}
      {left > 0 && <p className="text-text-2">come back in {Math.ceil(left / 1000)} s</p>}
      {retry && (
        <button type="button" className="target text-accent hover:underline" onClick={retry}>Retry</button>
      )}
    </div>
  );
}

/** "as of 14:02:11": over data that a failed refresh left behind. */
export function AsOf({ at, why }: { at: number; why?: string }) {
  return <span className="text-xs text-wait" title={why}>as of <Time at={at} />{why && <span className="visually-hidden"> because {why}</span>}</span>;
}

/** Keeps a broken panel from taking the page with it. */
export class Panel extends Component<{ children: ReactNode; what?: string }, { error?: unknown }> {
  override state: { error?: unknown } = {};
  static getDerivedStateFromError(error: unknown) {
    return { error };
  }
  override render() {
    if (this.state.error === undefined) return this.props.children;
    return (
      <ErrorPanel
        what={this.props.what}
        error={this.state.error}
        retry={() => this.setState({ error: undefined })}
      />
    );
  }
}
