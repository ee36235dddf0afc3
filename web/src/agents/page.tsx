// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("agents page");
  return <PageHead crumbs={<h1>agents page</h1>} />;
}
