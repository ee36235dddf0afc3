// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("fleet node");
  return <PageHead crumbs={<h1>fleet node</h1>} />;
}
