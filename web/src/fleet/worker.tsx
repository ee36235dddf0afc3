// This page is being built.
import { PageHead, useTitle } from "@/shell/crumbs";

export default function Page() {
  useTitle("fleet worker");
  return <PageHead crumbs={<h1>fleet worker</h1>} />;
}
