// Every part in all its states, in both themes side by side: for whoever changes a part, and for
// the browser tests. Parts register themselves with a `*.gallery.tsx` beside them.
import { type ReactNode, useEffect, useState } from "react";
import { CommandLine, ErrorPanel, Panel, Skeleton } from "@/parts/says";
import { useQuery } from "@/router";
import { PageHead, useTitle } from "@/shell/crumbs";
import type { Gallery } from "./gallery";

const MODULES = import.meta.glob<{ default: Gallery }>("../**/*.gallery.tsx");

export default function GalleryPage() {
  useTitle("gallery");
  const [only, setOnly] = useQuery("part");
  const [parts, setParts] = useState<Gallery[]>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    Promise.all(Object.values(MODULES).map((load) => load())).then(
      (loaded) => setParts(loaded.map((each) => each.default).sort((a, b) => a.title.localeCompare(b.title))),
      setError,
    );
  }, []);
  if (error) return <ErrorPanel error={error} what="the gallery" />;
  if (!parts) return <Skeleton what="the gallery" />;
  const shown = parts.filter((part) => !only || part.title === only);
  return (
    <>
      <PageHead crumbs={<h1 className="text-xl">Gallery</h1>} />
      <p className="mb-3 text-text-2">Every part of this page in its states, with made-up data. <CommandLine command="muster overview" /> shows real ones.</p>
      <nav aria-label="Parts" className="mb-4 flex flex-wrap gap-1">
        <button type="button" className="button" aria-pressed={!only} onClick={() => setOnly(null)}>all</button>
        {parts.map((part) => <button key={part.title} type="button" className="button" aria-pressed={only === part.title} onClick={() => setOnly(part.title)}>{part.title}</button>)}
      </nav>
      {shown.map((part) => (
        <section key={part.title} aria-label={part.title} className="mb-6">
          <h2 className="mb-2 text-lg">{part.title}</h2>
          <div className="grid grid-cols-1 gap-px border border-border bg-border">
            {part.states.map((state) => (
              <div key={state.name} className="grid grid-cols-1 gap-px bg-border sm:grid-cols-2">
                <Themed theme="light" name={state.name}>{state.show()}</Themed>
                <Themed theme="dark" name={state.name}>{state.show()}</Themed>
              </div>
            ))}
          </div>
        </section>
      ))}
    </>
  );
}

function Themed({ theme, name, children }: { theme: "light" | "dark"; name: string; children: ReactNode }) {
  return (
    <div data-theme={theme} className="min-w-0 bg-canvas p-3 text-text" data-state-name={name}>
      <p className="mb-2 text-xs text-text-3">{name}</p>
      <Panel what={name}>{children}</Panel>
    </div>
  );
}
