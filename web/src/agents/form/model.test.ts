import { describe, expect, it } from "vitest";
import { tokensOf } from "@/execution/json/tokens";
import { branchOf, pathOfField, suits, warningsOf } from "./check";
import { type ExactObject, rawOf, readExact } from "./exact";
import { type Field, blank, fieldOf, formOf, wordsOf } from "./model";
import { pathText, setAt } from "./text";

const form = (schema: string): Field => {
  const made = formOf(readExact(schema));
  if ("reason" in made) throw new Error(made.reason);
  return made.field;
};
const reason = (schema: string | undefined) => {
  const made = formOf(schema === undefined ? undefined : readExact(schema));
  return "reason" in made ? made.reason : undefined;
};
const member = (field: Field, name: string): Field => {
  const found = field.members.find((each) => each.name === name);
  if (!found) throw new Error(`no ${name}`);
  return found.field();
};
const warnings = (field: Field, text: string) => warningsOf(field, tokensOf(text)).map(({ path, says }) => `${pathText(path)} ${says}`);

describe("exact values", () => {
  it("come out as they went in", () => {
    const text = '{"a": [9223372036854775807, 1.0, -0e5, "\\u00e9\\"", null, true, {}], "__proto__": {"x": 1}}';
    expect(rawOf(readExact(text) ?? null)).toBe('{"a": [9223372036854775807, 1.0, -0e5, "é\\"", null, true, {}], "__proto__": {"x": 1}}');
    expect(readExact("{")).toBeUndefined();
  });
});

describe("a schema as a form", () => {
  const trip = form(`{"type":"object","required":["city"],"properties":{
    "city":{"type":"string","description":"where","maxLength":20},
    "days":{"type":"integer","minimum":1,"maximum":14,"default":3},
    "unit":{"enum":["c","f"]},
    "big":{"type":"integer","default":9223372036854775807},
    "place":{"$ref":"#/$defs/Place"},
    "exact":{"type":["boolean","null"]},
    "price":{"anyOf":[{"type":"number"},{"type":"null"}],"default":null},
    "tags":{"type":"array","items":{"type":"string"},"maxItems":2}},
    "$defs":{"Place":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"near":{"$ref":"#/$defs/Place"}},"additionalProperties":false}}}`);

  it("has the fields in order, with what they are", () => {
    expect(trip.members.map(({ name, required }) => name + (required ? "*" : ""))).toEqual(["city*", "days", "unit", "big", "place", "exact", "price", "tags"]);
    expect(wordsOf(member(trip, "city"))).toBe("string, at most 20 characters");
    expect(wordsOf(member(trip, "days"))).toBe("integer, ≥ 1, ≤ 14, default 3");
    expect(wordsOf(member(trip, "big"))).toBe("integer, default 9223372036854775807");
    expect(member(trip, "unit").choices).toEqual(['"c"', '"f"']);
    expect(member(trip, "exact")).toMatchObject({ kind: "boolean", nullable: true });
    expect(member(trip, "price")).toMatchObject({ kind: "number", nullable: true, standard: "null" });
    expect(wordsOf(member(trip, "tags"))).toBe("list of string, at most 2");
  });

  it("follows a schema that holds itself, as deep as somebody looks", () => {
    let at = member(trip, "place");
    for (let depth = 0; depth < 50; depth += 1) at = member(at, "near");
    expect(at.kind).toBe("object");
    expect(fieldOf(readExact('{"$ref":"#/$defs/A"}'), readExact('{"$defs":{"A":{"$ref":"#/$defs/A"}}}') as ExactObject)).toMatchObject({
      kind: "json", reason: "references that lead in a circle",
    });
  });

  it("puts the parts of allOf together", () => {
    const field = form('{"allOf":[{"$ref":"#/$defs/A"},{"properties":{"b":{"type":"integer"}},"required":["b"]}],"$defs":{"A":{"type":"object","properties":{"a":{"type":"string"}}}}}');
    expect(field.members.map(({ name, required }) => [name, required])).toEqual([["a", false], ["b", true]]);
  });

  it("offers alternatives, and knows which one a value is", () => {
    const field = form(`{"type":"object","properties":{"shape":{"oneOf":[
      {"title":"circle","type":"object","required":["r"],"properties":{"kind":{"const":"circle"},"r":{"type":"number"}}},
      {"title":"box","type":"object","required":["w"],"properties":{"kind":{"const":"box"},"w":{"type":"number"}}},
      {"type":"string"}]}}}`);
    const shape = member(field, "shape");
    expect(shape.branches.map((branch) => branch.name)).toEqual(["circle", "box", "text"]);
    const named = (text: string) => branchOf(shape, tokensOf(text), 0)?.name;
    expect(named('{"kind":"box","w":1}')).toBe("box");
    expect(named('{"r":1}')).toBe("circle");
    expect(named('"square"')).toBe("text");
    expect(named("[]")).toBeUndefined();
  });

  it("says why there is no form", () => {
    expect(reason(undefined)).toContain("no schema");
    expect(reason("true")).toContain("no object");
    expect(reason('{"type":"object"}')).toContain("names no fields");
    expect(reason('{"type":"string"}')).toContain("an input is an object");
    expect(reason('{"$ref":"#/nowhere"}')).toContain("leads nowhere: #/nowhere");
    expect(reason('{"$ref":"https://example.com/s.json"}')).toContain("leads nowhere");
    expect(reason(`{"type":"object","properties":{${Array.from({ length: 300 }, (_, n) => `"k${n}":{}`).join()}}}`)).toContain("300 fields");
  });

  it("takes a part that cannot be a field as JSON, with the reason", () => {
    const field = form('{"type":"object","properties":{"a":{"type":"object"},"b":{"type":"array"},"c":{},"d":{"$ref":"#/x"},"e":true,"f":{"type":"array","prefixItems":[{}]},"g":{"type":"date"}}}');
    for (const each of field.members) {
      expect(each.field().kind, each.name).toBe("json");
      expect(each.field().reason, each.name).toBeTruthy();
    }
  });
});

describe("warnings", () => {
  const field = form(`{"type":"object","required":["city","n"],"additionalProperties":false,"properties":{
    "city":{"type":"string","minLength":2},"n":{"type":"integer","maximum":10},"unit":{"enum":["c","f",null]},
    "place":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}},"tags":{"type":"array","items":{"type":"string"}}}}`);

  it("are at the field, in words", () => {
    expect(warnings(field, "{}")).toEqual(["city is required", "n is required"]);
    expect(warnings(field, '{"city":"x","n":11.5}')).toEqual(["city is shorter than 2", "n is number, not an integer"]);
    expect(warnings(field, '{"city":"xx","n":11,"unit":"k","tags":["a",1],"place":{},"more":1}')).toEqual([
      "n is above 10", "unit is string, not one of the choices", "place.name is required", "tags[1] is number, not a string", "more is not in the schema",
    ]);
  });

  it("are none where all is well", () => {
    expect(warnings(field, '{"city":"Ly\\u006fn","n":10.0,"unit":null}')).toEqual([]);
    expect(warnings(field, '{"city":"Lyon","n":-9223372036854775808,"unit":"\\u0063","place":{"name":"x"},"tags":[]}')).toEqual([]);
  });

  it("name a field as the plane does", () => {
    expect(pathOfField("place.tags.0")).toEqual(["place", "tags", 0]);
    expect(pathText(["place", "tags", 0, "x"])).toBe("place.tags[0].x");
  });
});

describe("a form and its text", () => {
  it("gives the same values again, whatever is filled in", () => {
    const schema = '{"type":"object","properties":{"s":{"type":"string"},"i":{"type":"integer"},"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"}}}},"c":{"enum":[1,"a"]},"b":{"type":"boolean"}}}';
    const field = form(schema);
    let text = "{}";
    for (const each of field.members) text = setAt(text, [each.name], blank(each.field()));
    text = setAt(text, ["i"], "9223372036854775807");
    text = setAt(text, ["l", 0, "x"], "1e400");
    expect(text).toBe('{"s": "", "i": 9223372036854775807, "l": [{"x": 1e400}], "c": 1, "b": false}');
    expect(warnings(field, text)).toEqual([]);
    const tokens = tokensOf(text);
    expect(suits(field, tokens, 0)).toBe(true);
  });
});
