// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("execution page");
  return <PageHead crumbs={<h1>execution page</h1>} />;
}
