// What the plane does without being asked: when it last ran, what it did, when it is due, and why
// one that is late is late.
import { useQuery } from "@/router";
import { Narrow } from "@/parts/narrow";
import { StateMark } from "@/parts/state-mark";
import { Age, Took, Unknown } from "@/parts/values";
import { WhyPanel } from "@/parts/why";
import { type Duty, byNeed } from "./duties";

export function Duties({ duties }: { duties: readonly Duty[] }) {
  const [why, setWhy] = useQuery("why");
  const late = duties.filter((duty) => duty.late).length;
  return (
    <section aria-labelledby="duties">
      <h2 id="duties" className="mb-1">Duties{late > 0 && <span className="text-wait"> · {late} late</span>}</h2>
      <table className="w-full border-collapse">
        <thead className="hidden text-left text-xs text-text-3 sm:table-header-group">
          <tr><th className="py-1 pr-3">DUTY</th><th className="pr-3 text-right">LAST RAN</th><th className="pr-3 text-right">TOOK</th><th className="pr-3">DID</th><th className="pr-3 text-right">DUE</th><th><span className="visually-hidden">why</span></th></tr>
        </thead>
        <tbody>
          {byNeed(duties).map((duty) => <Row key={duty.name} duty={duty} open={why === duty.name} toggle={() => setWhy(why === duty.name ? null : duty.name)} />)}
        </tbody>
      </table>
    </section>
  );
}

function Row({ duty, open, toggle }: { duty: Duty; open: boolean; toggle(): void }) {
  return (
    <>
      <tr className="flex flex-wrap items-baseline gap-x-3 border-t border-border py-1 sm:table-row sm:py-0">
        <th scope="row" className="font-semibold sm:h-[var(--row)] sm:pr-3">
          {duty.name} {duty.late && <StateMark state="late" evidence="it should have run" />}{duty.failed && <StateMark state="failed" evidence="its last run failed" />}
        </th>
        <td className="sm:pr-3 sm:text-right"><Narrow>ran</Narrow><Age at={duty.last_ran_at} plain reason="it has not run since the start" /></td>
        <td className="sm:pr-3 sm:text-right"><Narrow>took</Narrow>{duty.took_ms === undefined ? <Unknown reason={duty.last_ran_at ? "the plane does not tell it" : "it has not run since the start"} /> : <Took ms={duty.took_ms} />}</td>
        <td className="min-w-0 text-text-2 sm:pr-3">{duty.did || <Unknown reason={duty.last_ran_at ? "nothing to do" : "it has not run since the start"} />}</td>
        <td className="whitespace-nowrap sm:pr-3 sm:text-right"><Narrow>next</Narrow><Age at={duty.due_at} due /></td>
        <td className="sm:text-right"><button type="button" className="min-h-6 text-accent underline underline-offset-2" aria-expanded={open} aria-label={`Why ${duty.name}`} onClick={toggle}>why</button></td>
      </tr>
      {open && <tr><td colSpan={6} className="border-t border-border py-2"><WhyPanel id={duty.name} kind="duty" /></td></tr>}
    </>
  );
}
