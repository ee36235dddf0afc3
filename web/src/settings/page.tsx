// Settings: who may, which machines, how this page looks, how the plane is set, what was done.
// A section a page, each with its own address.
import { type ComponentType, type LazyExoticComponent, Suspense, lazy } from "react";
import { Link } from "@/router";
import { Panel, Skeleton } from "@/parts/says";
import { PageHead, useTitle } from "@/shell/crumbs";

type Section = LazyExoticComponent<ComponentType>;
const SECTIONS: Record<string, { name: string; Section: Section }> = {
  keys: { name: "Keys", Section: lazy(() => import("./keys")) },
  nodes: { name: "Node enrolment", Section: lazy(() => import("./enrolment")) },
  display: { name: "Display", Section: lazy(() => import("./display")) },
  tags: { name: "Tags", Section: lazy(() => import("./tags")) },
  audit: { name: "Audit log", Section: lazy(() => import("./audit")) },
  configuration: { name: "Configuration", Section: lazy(() => import("./configuration")) },
  about: { name: "About", Section: lazy(() => import("./about")) },
};

export default function SettingsPage({ section = "" }: { section?: string }) {
  // On a wide page the first section is there at once; on a phone the list is.
  const chosen = SECTIONS[section];
  const shown = chosen ?? SECTIONS.keys;
  useTitle(chosen ? `${chosen.name} · Settings` : "Settings");
  return (
    <>
      <PageHead
        crumbs={chosen
          ? <><Link to="/settings" className="text-text-2">Settings</Link><span className="text-text-3">/</span><h1>{chosen.name}</h1></>
          : <h1>Settings</h1>}
      />
      <div className="flex flex-col gap-6 sm:flex-row">
        <nav aria-label="Sections" className={`shrink-0 sm:block sm:w-40 ${chosen ? "hidden" : ""}`}>
          {Object.entries(SECTIONS).map(([key, each]) => (
            <Link key={key} to={`/settings/${key}`} aria-current={each === shown ? "page" : undefined}
              className="flex min-h-9 items-center rounded-sm px-2 hover:bg-hover sm:aria-[current]:bg-selected sm:min-h-7">{each.name}</Link>
          ))}
        </nav>
        <div className={`min-w-0 flex-1 ${chosen ? "" : "hidden sm:block"}`}>
          {shown && (
            <Panel key={shown.name} what={shown.name}>
              <Suspense fallback={<Skeleton what={shown.name} />}><shown.Section /></Suspense>
            </Panel>
          )}
        </div>
      </div>
    </>
  );
}
