import { describe, expect, it } from "vitest";
import { KEPT, NOTHING, readPage, withPage } from "./logs-data";

const entry = (seq: number, attributes = "{}") =>
  `{"attributes":${attributes},"event_type":"log.info","level":"info","message":"line ${seq}","seq":${seq},"source":"sdk","ts":"2026-01-01T00:00:00.000Z"}`;
const page = (seqs: number[], rest = '"dropped":0,"total":9,"next_after":9,"has_more":false') =>
  `{"entries":[${seqs.map((seq) => entry(seq)).join(",")}],${rest}}`;
const shown = (logs: typeof NOTHING) => logs.rows.map((row) => (row.is === "line" ? row.line.seq : `${row.lines} dropped`));

describe("log lines", () => {
  it("keep their attributes as they were written", () => {
    const text = `{"dropped":0,"entries":[${entry(1, '{"id":9223372036854775807,"attributes":{"x":1}}')},${entry(2, "null")}],"total":2,"next_after":2,"has_more":false}`;
    const read = readPage(text);
    expect(read.lines.map((line) => line.attributes)).toEqual(['{"id":9223372036854775807,"attributes":{"x":1}}', "null"]);
  });

  it("have their gaps where they are, once", () => {
    const rest = '"dropped":214,"total":4,"next_after":9,"has_more":false,"gaps":[{"after":2,"lines":214}]';
    let logs = withPage(NOTHING, readPage(page([1, 2], '"dropped":0,"total":2,"next_after":2,"has_more":true')));
    logs = withPage(logs, readPage(page([217, 218], rest)));
    expect(shown(logs)).toEqual([1, 2, "214 dropped", 217, 218]);
    logs = withPage(logs, readPage(page([219], rest)));
    expect(shown(logs)).toEqual([1, 2, "214 dropped", 217, 218, 219]);
  });

  it("are bounded, and what left is counted", () => {
    const seqs = Array.from({ length: KEPT }, (_, index) => index + 1);
    let logs = withPage(NOTHING, readPage(page(seqs)));
    logs = withPage(logs, readPage(page([KEPT + 1, KEPT + 2])));
    expect(logs.rows).toHaveLength(KEPT);
    expect(logs.earlier).toBe(2);
    expect(shown(logs)[0]).toBe(3);
  });
});
