// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("agents call");
  return <PageHead crumbs={<h1>agents call</h1>} />;
}
