// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("gallery page");
  return <PageHead crumbs={<h1>gallery page</h1>} />;
}
