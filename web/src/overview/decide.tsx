// A person's decision in place: the execution is asked for when somebody begins to decide.
import { Link, path } from "@/router";

/** Leads to the execution that waits, where it is decided. */
export function Decide({ id }: { id: string }) {
  return <Link to={path("executions", id)} className="button button-compact">Decide</Link>;
}
