// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("overview page");
  return <PageHead crumbs={<h1>overview page</h1>} />;
}
