// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("runs page");
  return <PageHead crumbs={<h1>runs page</h1>} />;
}
