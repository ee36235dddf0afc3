import { expect, it } from "vitest";
import { problemOf } from "./problem";

const refused = (details: unknown) => problemOf(new Response(JSON.stringify({ error_category: "permission_denied", message: "no", details }), { status: 403 }));

it("names the scope that a key lacks", async () => {
  expect((await refused({ needs: "operate" })).detail.needs).toBe("operate");
  expect((await refused({ needs: "operate" })).needsKey).toBe(true);
});
it("names none where the plane does not, or says something else", async () => {
  expect((await refused(undefined)).detail.needs).toBeUndefined();
  expect((await refused({ needs: 7 })).detail.needs).toBeUndefined();
  expect((await refused("operate")).detail.needs).toBeUndefined();
});
