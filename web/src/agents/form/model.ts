// A JSON schema as fields of a form: what kind each is, what it is called, what it may be. Fields
// inside are made when they are shown, so that a schema that holds itself is no trouble. What
// cannot be a field is a text of JSON, with the reason.
import { type Exact, type ExactObject, Numeral, isObject, rawOf } from "./exact";

export type Kind = "text" | "number" | "integer" | "boolean" | "choice" | "object" | "list" | "union" | "json" | "null";

export type Member = { name: string; required: boolean; field(): Field };
export type Branch = { name: string; field(): Field };

export type Field = {
  kind: Kind;
  title?: string;
  description?: string;
  /** `null` is a value of it too. */
  nullable: boolean;
  /** JSON, as the schema writes it. */
  standard?: string;
  /** For a choice: JSON of each. */
  choices: string[];
  /** For an object, in the schema's order. */
  members: Member[];
  /** For an object: keys beside its members. `false`: none; a field: of this kind. */
  others: false | (() => Field);
  /** For a list. */
  item?(): Field;
  /** For a union. */
  branches: Branch[];
  /** `≥ 1`, `at most 20 characters`. */
  limits: string[];
  bounds: Bounds;
  /** Why it is a text of JSON. */
  reason?: string;
};

export type Bounds = { min?: number; max?: number; over?: number; under?: number; minLength?: number; maxLength?: number; minItems?: number; maxItems?: number };

/** More members than this are not a form. */
const MEMBERS_MAX = 200;
/** References that lead to references. */
const HOPS_MAX = 32;

/** The form of a function's input; a reason when there can be none. */
export function formOf(schema: Exact | undefined): { field: Field } | { reason: string } {
  if (schema === undefined || schema === null) return { reason: "the function registered no schema of its input" };
  if (!isObject(schema)) return { reason: "its schema is no object" };
  const field = fieldOf(schema, schema);
  if (field.kind === "json") return { reason: field.reason ?? "its schema does not say which fields there are" };
  if (field.kind !== "object" && field.kind !== "union") return { reason: `its schema says ${field.kind}, and an input is an object` };
  if (field.kind === "object" && field.members.length === 0 && field.others === false) return { reason: "its schema says that there are no fields" };
  if (field.members.length > MEMBERS_MAX) return { reason: `it has ${field.members.length} fields, more than ${MEMBERS_MAX}` };
  return { field };
}

/** One schema as a field; `root` is where references lead. */
export function fieldOf(given: Exact | undefined, root: ExactObject): Field {
  const found = resolved(given, root);
  if ("reason" in found) return json(found.reason);
  const { schema } = found;
  const base = {
    title: textOf(schema.title), description: textOf(schema.description), nullable: false, choices: [], members: [], others: false as const,
    branches: [], limits: [], bounds: {}, standard: schema.default === undefined ? undefined : rawOf(schema.default),
  };
  if (Array.isArray(schema.enum)) return choice(base, schema.enum);
  if (schema.const !== undefined) return choice(base, [schema.const]);
  const alternatives = Array.isArray(schema.anyOf) ? schema.anyOf : Array.isArray(schema.oneOf) ? schema.oneOf : undefined;
  if (alternatives && alternatives.length > 0) return union(base, alternatives, schema, root);
  const types = typesOf(schema);
  const nullable = types.includes("null");
  const others = types.filter((type) => type !== "null");
  if (others.length === 0 && nullable) return { ...base, kind: "null" };
  if (others.length > 1) return { ...union(base, others.map((type) => withType(schema, type)), undefined, root), nullable };
  return { ...single(base, others[0], schema, root), nullable };
}

type Base = Omit<Field, "kind">;

function single(base: Base, type: string | undefined, schema: ExactObject, root: ExactObject): Field {
  switch (type) {
    case "string": return { ...base, kind: "text", ...limits(schema, type) };
    case "integer":
    case "number": return { ...base, kind: type, ...limits(schema, type) };
    case "boolean": return { ...base, kind: "boolean" };
    case "array": return list(base, schema, root);
    case "object": return object(base, schema, root);
    case undefined: return { ...base, kind: "json", reason: "its schema names no type" };
    default: return { ...base, kind: "json", reason: `its schema names a type that JSON does not have: ${type}` };
  }
}

function object(base: Base, schema: ExactObject, root: ExactObject): Field {
  const properties = isObject(schema.properties) ? Object.entries(schema.properties) : [];
  const extra = schema.additionalProperties;
  if (properties.length === 0 && extra === undefined && !isObject(schema.patternProperties)) {
    return { ...base, kind: "json", reason: "any object: its schema names no fields" };
  }
  const required = new Set(Array.isArray(schema.required) ? schema.required.filter((name): name is string => typeof name === "string") : []);
  return {
    ...base,
    kind: "object",
    members: properties.map(([name, each]) => ({ name, required: required.has(name), field: () => fieldOf(each, root) })),
    others: extra === false ? false : isObject(extra) ? () => fieldOf(extra, root) : () => json("any value"),
  };
}

function list(base: Base, schema: ExactObject, root: ExactObject): Field {
  if (Array.isArray(schema.prefixItems)) return { ...base, kind: "json", reason: "a list whose places differ" };
  if (!isObject(schema.items)) return { ...base, kind: "json", reason: "a list whose items its schema does not describe" };
  const items = schema.items;
  return { ...base, kind: "list", item: () => fieldOf(items, root), ...limits(schema, "array") };
}

function choice(base: Base, values: Exact[]): Field {
  const choices = values.filter((value) => value !== null).map(rawOf);
  return choices.length === 0 ? { ...base, kind: "null" } : { ...base, kind: "choice", choices, nullable: values.includes(null) };
}

/** Alternatives: `null` among them makes it nullable, constants are one choice, one that is left is it. */
function union(base: Base, alternatives: Exact[], around: ExactObject | undefined, root: ExactObject): Field {
  const fields = alternatives.map((each) => fieldOf(each, root));
  const nullable = fields.some((field) => field.kind === "null" || field.nullable);
  const rest = fields.map((field, index) => ({ field, schema: alternatives[index] })).filter(({ field }) => field.kind !== "null");
  const first = rest[0];
  if (!first) return { ...base, kind: "null" };
  if (around && isObject(around.properties)) return { ...base, kind: "json", reason: "fields and alternatives at once" };
  const own = (field: Field): Field => ({
    ...field, nullable, title: base.title ?? field.title, description: base.description ?? field.description, standard: base.standard ?? field.standard,
  });
  if (rest.length === 1) return own(first.field);
  if (rest.every(({ field }) => field.kind === "choice")) {
    return own({ ...first.field, choices: [...new Set(rest.flatMap(({ field }) => field.choices))] });
  }
  return {
    ...base, kind: "union", nullable,
    branches: rest.map(({ field, schema }, index) => ({ name: branchName(field, index), field: () => fieldOf(schema, root) })),
  };
}

function branchName(field: Field, index: number): string {
  if (field.title) return field.title;
  if (field.kind === "object") return field.members.length > 0 ? `{${field.members.slice(0, 3).map((member) => member.name).join(", ")}}` : "object";
  return field.kind === "json" ? `JSON ${index + 1}` : field.kind;
}

const json = (reason: string): Field => ({
  kind: "json", reason, nullable: false, choices: [], members: [], others: false, branches: [], limits: [], bounds: {},
});

/** Follows references inside the schema, and puts the parts of `allOf` together. */
function resolved(given: Exact | undefined, root: ExactObject): { schema: ExactObject } | { reason: string } {
  let at = given;
  const said: ExactObject = Object.create(null) as ExactObject;
  for (let hop = 0; hop < HOPS_MAX; hop += 1) {
    if (at === true || at === undefined) return { reason: "any value" };
    if (!isObject(at)) return { reason: "its schema allows nothing" };
    // What stands beside a reference counts before what it leads to.
    for (const key of ["title", "description", "default"]) if (said[key] === undefined && at[key] !== undefined) said[key] = at[key];
    if (typeof at.$ref === "string") {
      const target = pointed(root, at.$ref);
      if (target === undefined) return { reason: `a reference that leads nowhere: ${at.$ref}` };
      at = target;
      continue;
    }
    if (Array.isArray(at.allOf) && at.allOf.length > 0) {
      const merged = mergedOf(at, root);
      if (!merged) return { reason: "parts that do not fit together" };
      at = merged;
    }
    const schema = Object.assign(Object.create(null) as ExactObject, at, said);
    return { schema };
  }
  return { reason: "references that lead in a circle" };
}

function mergedOf(schema: ExactObject, root: ExactObject): ExactObject | undefined {
  const parts = schema.allOf as Exact[];
  if (parts.length > 16) return undefined;
  const merged = Object.assign(Object.create(null) as ExactObject, schema) as ExactObject;
  delete merged.allOf;
  const properties = Object.assign(Object.create(null) as ExactObject, isObject(schema.properties) ? schema.properties : {}) as ExactObject;
  const required: Exact[] = Array.isArray(schema.required) ? [...schema.required] : [];
  for (const part of parts) {
    let at: Exact | undefined = part;
    for (let hop = 0; hop < HOPS_MAX && isObject(at) && typeof at.$ref === "string"; hop += 1) at = pointed(root, at.$ref);
    if (!isObject(at) || Array.isArray(at.allOf)) return undefined;
    if (isObject(at.properties)) Object.assign(properties, at.properties);
    if (Array.isArray(at.required)) required.push(...at.required);
    for (const [key, value] of Object.entries(at)) if (key !== "properties" && key !== "required") merged[key] ??= value;
  }
  if (Object.keys(properties).length > 0) merged.properties = properties;
  if (required.length > 0) merged.required = required;
  return merged;
}

/** `#/$defs/Place`; nothing outside the schema is ever looked at. */
function pointed(root: ExactObject, reference: string): Exact | undefined {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let at: Exact | undefined = root;
  for (const part of reference.slice(2).split("/")) {
    let key = part;
    try {
      key = decodeURIComponent(part);
    } catch {
      // Not percent-encoded after all.
    }
    key = key.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isObject(at) ? at[key] : Array.isArray(at) ? at[Number(key)] : undefined;
    if (at === undefined) return undefined;
  }
  return at;
}

function typesOf(schema: ExactObject): string[] {
  if (typeof schema.type === "string") return [schema.type];
  if (Array.isArray(schema.type)) return schema.type.filter((type): type is string => typeof type === "string");
  if (isObject(schema.properties)) return ["object"];
  return isObject(schema.items) ? ["array"] : [];
}

const withType = (schema: ExactObject, type: string): ExactObject => Object.assign(Object.create(null) as ExactObject, schema, { type, title: undefined, description: undefined, default: undefined });

const textOf = (value: Exact | undefined): string | undefined => (typeof value === "string" && value.trim() ? value : undefined);
const number = (value: Exact | undefined): number | undefined => (value instanceof Numeral ? Number(value.raw) : undefined);

function limits(schema: ExactObject, type: "string" | "number" | "integer" | "array"): { limits: string[]; bounds: Bounds } {
  const raw = (key: string) => (schema[key] instanceof Numeral ? (schema[key] as Numeral).raw : undefined);
  const said: (string | undefined)[] =
    type === "string"
      ? [raw("minLength") && `at least ${raw("minLength")} characters`, raw("maxLength") && `at most ${raw("maxLength")} characters`,
        textOf(schema.format), textOf(schema.pattern) && `fits ${textOf(schema.pattern)}`]
      : type === "array"
        ? [raw("minItems") && `at least ${raw("minItems")}`, raw("maxItems") && `at most ${raw("maxItems")}`]
        : [raw("minimum") && `≥ ${raw("minimum")}`, raw("exclusiveMinimum") && `> ${raw("exclusiveMinimum")}`, raw("maximum") && `≤ ${raw("maximum")}`,
          raw("exclusiveMaximum") && `< ${raw("exclusiveMaximum")}`, raw("multipleOf") && `a multiple of ${raw("multipleOf")}`];
  return {
    limits: said.filter((each): each is string => typeof each === "string" && each !== ""),
    bounds: {
      min: number(schema.minimum), max: number(schema.maximum), over: number(schema.exclusiveMinimum), under: number(schema.exclusiveMaximum),
      minLength: number(schema.minLength), maxLength: number(schema.maxLength), minItems: number(schema.minItems), maxItems: number(schema.maxItems),
    },
  };
}

/** What a new value of a field is, when somebody adds one: empty, never invented. */
export function blank(field: Field): string {
  if (field.standard !== undefined) return field.standard;
  switch (field.kind) {
    case "text": return '""';
    case "number":
    case "integer": return "0";
    case "boolean": return "false";
    case "choice": return field.choices[0] ?? "null";
    case "object": return "{}";
    case "list": return "[]";
    case "union": return field.branches[0] ? blank(field.branches[0].field()) : "null";
    default: return "null";
  }
}

/** `string, at most 20 characters`, `list of integer`: what a field is, in words. */
export function wordsOf(field: Field): string {
  const kind: string =
    field.kind === "text" ? "string"
      : field.kind === "choice" ? (field.choices.length === 1 ? `always ${field.choices[0]}` : "one of these")
        : field.kind === "list" && field.item ? `list of ${wordsOf(field.item()).split(",")[0]}`
          : field.kind === "union" ? "one of several" : field.kind === "json" ? (field.reason ?? "any value") : field.kind;
  return [kind, ...field.limits, ...(field.nullable ? ["or null"] : []), ...(field.standard === undefined ? [] : [`default ${field.standard}`])].join(", ");
}
