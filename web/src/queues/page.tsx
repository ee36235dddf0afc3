// When does my call start? Which agent's queue waits longest, what holds it, and who comes next in
// one of them. The order is the plane's own.
import { OneQueue } from "./one";
import { AllQueues } from "./all";

export default function QueuesPage({ agent }: { agent?: string }) {
  return agent === undefined ? <AllQueues /> : <OneQueue key={agent} agent={agent} />;
}
