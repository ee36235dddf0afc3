// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("fleet page");
  return <PageHead crumbs={<h1>fleet page</h1>} />;
}
