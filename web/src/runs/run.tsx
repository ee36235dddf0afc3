// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("runs run");
  return <PageHead crumbs={<h1>runs run</h1>} />;
}
