// Settings: who may, which machines, how this page looks, how the plane is set, what was done.
// A section a page, each with its own address.
import type { ComponentType } from "react";
import type { Session } from "@/api/session";
import { ForScope } from "@/login/ask";
import { late } from "@/parts/late";
import { Plain } from "@/parts/plain";
import { Link } from "@/router";
import { Panel, Skeleton } from "@/parts/says";
import { PageHead, useTitle } from "@/shell/crumbs";

type Section = {
  name: string;
  Section: ComponentType;
  /** What of it wants the scope `admin`; `unless` the plane shows it to this reader without. */
  admin?: { what: string; unless?(session: Session): boolean };
};

const sectionOf = (name: string, load: () => Promise<{ default: ComponentType }>, admin?: Section["admin"]): Section => ({ name, Section: late(load, <Skeleton what={name} />), admin });

const SECTIONS: Record<string, Section> = {
  keys: sectionOf("Keys", () => import("./keys"), { what: "Seeing and changing keys" }),
  nodes: sectionOf("Node enrolment", () => import("./enrolment"), { what: "Adding a machine" }),
  display: sectionOf("Display", () => import("./display")),
  tags: sectionOf("Tags", () => import("./tags")),
  audit: sectionOf("Audit log", () => import("./audit"), { what: "Reading the audit log" }),
  // On the plane's own machine it is shown without a key.
  configuration: sectionOf("Configuration", () => import("./configuration"), { what: "Seeing the configuration", unless: (session) => session.loopback && session.key_id === null }),
  about: sectionOf("About", () => import("./about")),
};

export default function SettingsPage({ section = "" }: { section?: string }) {
  // On a wide page the first section is there at once; on a phone the list is.
  const chosen = Object.hasOwn(SECTIONS, section) ? SECTIONS[section] : undefined;
  const shown = chosen ?? (section === "" ? SECTIONS.keys : undefined);
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
        <div className={`min-w-0 flex-1 ${chosen || !shown ? "" : "hidden sm:block"}`}>
          {shown ? (
            <Panel key={shown.name} what={shown.name}>
              <Guarded section={shown} />
            </Panel>
          ) : <p className="text-text-2">Settings have no section <code><Plain text={section} /></code>. Choose one of the list.</p>}
        </div>
      </div>
    </>
  );
}

function Guarded({ section: { Section, admin } }: { section: Section }) {
  return admin ? <ForScope scope="admin" {...admin}><Section /></ForScope> : <Section />;
}
