// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("health page");
  return <PageHead crumbs={<h1>health page</h1>} />;
}
