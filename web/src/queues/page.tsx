// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("queues page");
  return <PageHead crumbs={<h1>queues page</h1>} />;
}
