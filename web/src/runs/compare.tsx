// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("runs compare");
  return <PageHead crumbs={<h1>runs compare</h1>} />;
}
