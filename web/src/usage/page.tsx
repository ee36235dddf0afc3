// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("usage page");
  return <PageHead crumbs={<h1>usage page</h1>} />;
}
