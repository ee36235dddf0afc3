// A form over a text of JSON: valid, warned, refused by field, and no form possible.
import { useMemo, useState } from "react";
import { tokensOf } from "@/execution/json/tokens";
import type { Gallery } from "@/gallery/gallery";
import { SlotBar } from "../slots";
import { warningsOf } from "./check";
import { readExact } from "./exact";
import { EditingProvider, ObjectFields } from "./fields";
import { formOf } from "./model";
import { pathText, removeAt, setAt } from "./text";

const SCHEMA = `{"type":"object","required":["city"],"properties":{
  "city":{"type":"string","description":"where","maxLength":20},
  "days":{"type":"integer","minimum":1,"maximum":14,"default":3},
  "unit":{"enum":["c","f"]},
  "exact":{"type":["boolean","null"]},
  "place":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}},"additionalProperties":false},
  "tags":{"type":"array","items":{"type":"string"},"maxItems":2},
  "shape":{"oneOf":[{"title":"circle","type":"object","required":["r"],"properties":{"r":{"type":"number"}}},{"type":"string"}]}}}`;

function Form({ text: first, refused, schema = SCHEMA }: { text: string; refused?: { field: string; says: string }; schema?: string }) {
  const [text, setText] = useState(first);
  const made = useMemo(() => formOf(readExact(schema)), [schema]);
  const tokens = useMemo(() => tokensOf(text), [text]);
  if ("reason" in made) return <p className="text-text-2">As text only: {made.reason}.</p>;
  const warnings = warningsOf(made.field, tokens);
  return (
    <EditingProvider value={{
      tokens, set: (at, raw) => setText(setAt(text, at, raw)), remove: (at) => setText(removeAt(text, at)),
      says: (at) => [
        ...(refused?.field === pathText(at) ? [{ text: refused.says, refused: true }] : []),
        ...warnings.filter((warning) => pathText(warning.path) === pathText(at)).map((warning) => ({ text: warning.says, refused: false })),
      ],
    }}>
      <ObjectFields field={made.field} path={[]} />
    </EditingProvider>
  );
}

const gallery: Gallery = {
  title: "SchemaForm, SlotBar",
  states: [
    { name: "valid", show: () => <Form text='{"city":"Lyon","days":3,"unit":"c","place":{"name":"Bellecour"},"tags":["a"],"shape":{"r":2}}' /> },
    { name: "warned", show: () => <Form text='{"city":"a name that is longer than it may be","days":99,"tags":["a","b","c"]}' /> },
    { name: "refused by field", show: () => <Form text='{"city":"Atlantis","days":3}' refused={{ field: "city", says: "is not on any map" }} /> },
    { name: "no form possible", show: () => <Form text="{}" schema='{"type":"array"}' /> },
    { name: "SlotBar: none held, some, full, over the cap, many, no cap", show: () => <span className="flex flex-wrap gap-6"><SlotBar used={0} cap={4} /><SlotBar used={3} cap={4} /><SlotBar used={4} cap={4} /><SlotBar used={6} cap={4} /><SlotBar used={130} cap={512} /><SlotBar used={7} cap={null} /></span> },
  ],
};
export default gallery;
