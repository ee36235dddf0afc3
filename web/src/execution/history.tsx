// What an agent noted, and what happened to an execution by the plane's own sequence.
import { useEffect, useRef } from "react";
import { Plain } from "@/parts/plain";
import { ErrorPanel, Skeleton } from "@/parts/says";
import { Age, Id, Time } from "@/parts/values";
import { useEvents, useNotes } from "./data";

export function NotesTab({ id, open }: { id: string; open: boolean }) {
  const { data, error, refetch } = useNotes(id, open);
  if (!data) return error ? <ErrorPanel error={error} what="notes" retry={() => void refetch()} /> : <Skeleton rows={3} what="notes" />;
  if (data.notes.length === 0) {
    return <p className="p-3 text-text-2">{open ? "No notes yet." : "No notes."} An agent leaves one with <code>app.note("…", ["tag"])</code>.</p>;
  }
  return (
    <ol aria-label="Notes" className="flex flex-col">
      {data.notes.map((note, index) => (
        <li key={index} className="border-b border-border px-3 py-2">
          <p className="flex flex-wrap items-center gap-2 text-text-3">
            <Time at={note.timestamp} /> <Age at={note.timestamp} />
            {note.tags.map((tag, at) => <code key={at} className="rounded-sm bg-tint-neutral px-1"><Plain text={tag} /></code>)}
          </p>
          <pre className="break-words whitespace-pre-wrap"><Plain text={note.message} lines /></pre>
        </li>
      ))}
    </ol>
  );
}

/** `chosen`: the event that somebody followed a link to. */
export function EventsTab({ id, chosen }: { id: string; chosen?: number }) {
  const { data, error, refetch } = useEvents(id);
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => row.current?.scrollIntoView({ block: "nearest" }), [chosen, data]);
  if (!data) return error ? <ErrorPanel error={error} what="events" retry={() => void refetch()} /> : <Skeleton rows={4} what="events" />;
  if (data.events.length === 0) return <p className="p-3 text-text-2">No events: retention keeps them for a shorter time than executions.</p>;
  return (
    <table className="w-full border-collapse">
      <thead>
        <tr className="border-b border-border text-text-3">
          <th scope="col" className="px-3 py-1 text-right">Seq</th><th scope="col" className="pr-3">When</th><th scope="col" className="pr-3">What</th>
        </tr>
      </thead>
      <tbody>
        {data.events.map((event) => (
          <tr key={event.seq} ref={event.seq === chosen ? row : undefined} className={`border-b border-border align-top ${event.seq === chosen ? "bg-selected" : ""}`}>
            <td className="px-3 py-1 text-right text-text-3">{event.seq}</td>
            <td className="py-1 pr-3 whitespace-nowrap"><Time at={event.at} /></td>
            <td className="py-1 pr-3">
              <code><Plain text={event.type} /></code>
              <span className="ml-2 text-text-2">
                {event.attempt !== undefined && <>attempt {event.attempt} </>}
                {event.instance_id && <>on <Id id={event.instance_id} /> </>}
                {event.status_reason && <Plain text={event.status_reason} />}
                {event.error_category && event.error_category !== event.status_reason && <> <Plain text={event.error_category} /></>}
              </span>
              {event.text && <p className="break-words text-text-2"><Plain text={event.text} /></p>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
