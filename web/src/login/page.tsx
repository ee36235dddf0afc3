// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("login page");
  return <PageHead crumbs={<h1>login page</h1>} />;
}
