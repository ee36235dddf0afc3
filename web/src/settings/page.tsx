// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("settings page");
  return <PageHead crumbs={<h1>settings page</h1>} />;
}
