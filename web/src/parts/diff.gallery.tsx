// The difference of two texts: equal, different, one missing, too large.
import type { Gallery } from "@/gallery/gallery";
import { TextDiff } from "./diff";

const A = JSON.stringify({ city: "Lyon", days: 3, hotel: { name: "Bellecour", stars: 4 }, big: 0 }, null, 2).replace('"big": 0', '"big": 9223372036854775807');
const B = A.replace("Lyon", "Graz").replace('"stars": 4', '"stars": 3,\n    "pool": true');
const show = (a: string | null, b: string | null, none?: string) => <TextDiff label="Input" a={{ name: "A", text: a, none }} b={{ name: "B", text: b, none }} />;

const gallery: Gallery = {
  title: "JsonDiff",
  states: [
    { name: "different", show: () => show(A, B) },
    { name: "different, far apart: equal stretches are folded", show: () => show(many(["first"]), many(["last"])) },
    { name: "equal", show: () => show(A, A) },
    { name: "equal but for spaces", show: () => show('{"a":1,"b":2}', '{ "b": 2, "a": 1 }') },
    { name: "one is missing", show: () => show(A, null, "retention removed it 2 d ago") },
    { name: "both are missing", show: () => show(null, null, "it ended before it was sent") },
    { name: "too large", show: () => show("x".repeat(900_000), "y".repeat(900_000)) },
  ],
};

function many(changed: ("first" | "last")[]): string {
  const rows = Array.from({ length: 80 }, (_, n) => ({ n, name: `made-up ${n}` }));
  if (changed.includes("first")) rows[1] = { n: 1, name: "changed" };
  if (changed.includes("last")) rows[78] = { n: 78, name: "changed" };
  return JSON.stringify(rows, null, 2);
}
export default gallery;
