// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("agents agent");
  return <PageHead crumbs={<h1>agents agent</h1>} />;
}
