// Fields of a form over a text of JSON: each shows what the text has at its place and writes there,
// nowhere else. What is not in the text is shown as absent, never as a value.
import { createContext, useContext, useEffect, useId, useState } from "react";
import { type Node, type Tokens, decoded, keyOf, sourceOf, tokensOf } from "@/execution/json/tokens";
import { plain } from "@/look/plain";
import { Plain } from "@/parts/plain";
import { branchOf } from "./check";
import { type Field, blank, wordsOf } from "./model";
import { type Path, children, nodeAt, pathText } from "./text";

export type Editing = {
  tokens: Tokens;
  set(path: Path, raw: string): void;
  remove(path: Path): void;
  /** What is said about a place: warnings of this page, and the plane's refusal. */
  says(path: Path): { text: string; refused: boolean }[];
};

const EditingContext = createContext<Editing | undefined>(undefined);
export const EditingProvider = EditingContext.Provider;

function useEditing(): Editing {
  const editing = useContext(EditingContext);
  if (!editing) throw new Error("a field stands outside a form");
  return editing;
}

type Place = { field: Field; path: Path; name: string; required?: boolean };

/** The members of an object, and what else it has. */
export function ObjectFields({ field, path }: { field: Field; path: Path }) {
  const { tokens, set } = useEditing();
  const [key, setKey] = useState("");
  const at = nodeAt(tokens, path);
  const known = new Set(field.members.map((member) => member.name));
  const others = children(tokens, at).map((child) => keyOf(tokens, tokens.nodes[child] as Node) ?? "").filter((name, index, all) => !known.has(name) && all.indexOf(name) === index);
  const other = field.others === false ? undefined : field.others;
  return (
    <div className="flex flex-col gap-3">
      {field.members.map((member) => <FieldRow key={member.name} field={member.field()} path={[...path, member.name]} name={member.name} required={member.required} />)}
      {others.map((name) => <FieldRow key={`other ${name}`} field={other ? other() : NOT_THERE} path={[...path, name]} name={name} />)}
      {other && (field.members.length === 0 || others.length > 0) && (
        <form className="flex items-center gap-2"
          onSubmit={(event) => {
            event.preventDefault();
            if (key === "" || known.has(key) || others.includes(key)) return;
            set([...path, key], blank(other()));
            setKey("");
          }}>
          <input className="field w-40" aria-label={`New key in ${pathText(path) || "the input"}`} placeholder="key" value={key} onChange={(event) => setKey(event.target.value)} />
          <button type="submit" className="button">Add key</button>
        </form>
      )}
    </div>
  );
}

const NOT_THERE: Field = { kind: "json", reason: "not in the schema", nullable: true, choices: [], members: [], others: false, branches: [], limits: [], bounds: {} };

const NESTED = new Set(["object", "list", "union"]);

export function FieldRow({ field, path, name, required }: Place) {
  const { tokens, set, remove, says } = useEditing();
  const id = useId();
  const at = nodeAt(tokens, path);
  const node = tokens.nodes[at];
  const nothing = node?.kind === "null" && field.kind !== "null";
  const nested = NESTED.has(field.kind);
  const said = says(path);
  const about = `${id}-about`;
  const label = (
    <>
      <span className="font-mono text-xs"><Plain text={name} /></span>
      {required && <span className="text-wait" title="required"> *<span className="visually-hidden"> required</span></span>}
    </>
  );
  return (
    <div className="flex flex-col gap-1" role={nested ? "group" : undefined} aria-label={nested ? name : undefined}>
      <div className="flex flex-wrap items-baseline gap-x-3">
        {nested ? <span>{label}</span> : <label htmlFor={id}>{label}</label>}
        <span id={about} className="min-w-0 text-xs break-words text-text-3"><Plain text={wordsOf(field)} /></span>
        <span className="flex-1" />
        {field.nullable && !nothing && <button type="button" className="min-h-[24px] text-xs text-accent hover:underline" onClick={() => set(path, "null")} aria-label={`null for ${name}`}>null</button>}
        {node && typeof path.at(-1) === "string" && <button type="button" className="min-h-[24px] text-xs text-accent hover:underline" onClick={() => remove(path)} aria-label={`leave out ${name}`}>leave out</button>}
        {typeof path.at(-1) === "number" && <button type="button" className="min-h-[24px] text-xs text-accent hover:underline" onClick={() => remove(path)} aria-label={`remove ${name}`}>remove</button>}
      </div>
      {(field.title && field.title.toLowerCase() !== name.toLowerCase() || field.description) && (
        <p className="text-xs break-words text-text-2"><Plain text={[field.title?.toLowerCase() === name.toLowerCase() ? undefined : field.title, field.description].filter(Boolean).join(": ")} lines /></p>
      )}
      {nothing ? (
        <p className="flex items-center gap-3 text-text-2">
          <code>null</code>
          <button type="button" className="min-h-[24px] text-accent hover:underline" onClick={() => set(path, blank({ ...field, standard: field.standard === "null" ? undefined : field.standard }))}>give a value</button>
        </p>
      ) : <Control id={id} about={about} field={field} path={path} at={at} name={name} />}
      {said.map(({ text, refused }) => (
        <p key={text} className={`text-xs ${refused ? "text-fail" : "text-wait"}`} role={refused ? "alert" : undefined}>{refused ? "refused: " : ""}<Plain text={text} /></p>
      ))}
    </div>
  );
}

type ControlProps = { id: string; about: string; field: Field; path: Path; at: number; name: string };

function Control(props: ControlProps) {
  const { tokens } = useEditing();
  const { field, at } = props;
  const node = tokens.nodes[at];
  switch (field.kind) {
    case "text": return node && node.kind !== "string" ? <JsonControl {...props} /> : <TextControl {...props} />;
    case "number":
    case "integer": return node && node.kind !== "number" ? <JsonControl {...props} /> : <NumberControl {...props} />;
    case "boolean": return <ChoiceControl {...props} choices={["true", "false"]} />;
    case "choice": return <ChoiceControl {...props} choices={field.choices} />;
    case "null": return <ChoiceControl {...props} choices={["null"]} />;
    case "object": return <ObjectControl {...props} />;
    case "list": return <ListControl {...props} />;
    case "union": return <UnionControl {...props} />;
    case "json": return <JsonControl {...props} />;
  }
}

const sourceAt = (tokens: Tokens, at: number): string | undefined => {
  const node = tokens.nodes[at];
  return node && sourceOf(tokens, node);
};

function TextControl({ id, about, field, path, at }: ControlProps) {
  const { tokens, set } = useEditing();
  const source = sourceAt(tokens, at);
  const value = source === undefined ? "" : decoded(source);
  const shared = {
    id, value, className: "field w-full", "aria-describedby": about, spellCheck: false,
    placeholder: field.standard === undefined ? (source === undefined ? "absent" : "empty") : `absent: ${plain(field.standard)}`,
    onChange: (event: React.ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => set(path, JSON.stringify(event.target.value)),
  };
  return value.includes("\n") || value.length > 80 ? <textarea {...shared} rows={Math.min(10, value.split("\n").length + 1)} /> : <input type="text" {...shared} />;
}

/** A number as it is typed; what is no number yet stays here and is not in the text. */
function NumberControl({ id, about, field, path, at }: ControlProps) {
  const { tokens, set, remove } = useEditing();
  const source = sourceAt(tokens, at);
  const [typed, setTyped] = useState<string>();
  useEffect(() => setTyped(undefined), [source]);
  const value = typed ?? source ?? "";
  const wrong = typed !== undefined && typed !== "";
  return (
    <>
      <input id={id} type="text" inputMode={field.kind === "integer" ? "numeric" : "decimal"} className="field w-full max-w-80" aria-describedby={about} aria-invalid={wrong || undefined}
        value={value} placeholder={field.standard === undefined ? "absent" : `absent: ${plain(field.standard)}`} autoComplete="off"
        onChange={(event) => {
          const next = event.target.value.trim();
          const node = tokensOf(next).nodes[0];
          if (next === "") {
            setTyped(undefined);
            if (source !== undefined) remove(path);
          } else if (node?.kind === "number" && node.end === next.length && next.length > 0) {
            setTyped(undefined);
            set(path, next);
          } else setTyped(next);
        }} />
      {wrong && <p className="text-xs text-wait">not a number yet: the text still has {source ?? "nothing"} here</p>}
    </>
  );
}

function ChoiceControl({ id, about, field, path, at, choices }: ControlProps & { choices: string[] }) {
  const { tokens, set, remove } = useEditing();
  const source = sourceAt(tokens, at);
  const shown = choices.find((choice) => choice === source || (source?.startsWith('"') && choice.startsWith('"') && decoded(choice) === decoded(source)));
  return (
    <select id={id} className="field max-w-80 self-start" aria-describedby={about} value={source === undefined ? "" : (shown ?? "?")}
      onChange={(event) => (event.target.value === "" ? remove(path) : set(path, event.target.value))}>
      <option value="">{field.standard === undefined ? "absent" : `absent: ${plain(field.standard)}`}</option>
      {source !== undefined && shown === undefined && <option value="?" disabled>{plain(source.slice(0, 60))}</option>}
      {choices.map((choice) => <option key={choice} value={choice}>{plain(choice.startsWith('"') ? decoded(choice) : choice)}</option>)}
    </select>
  );
}

function ObjectControl({ field, path, at, name, ...rest }: ControlProps) {
  const { tokens, set } = useEditing();
  const node = tokens.nodes[at];
  if (!node) return <AddButton name={name} add={() => set(path, field.standard ?? "{}")} />;
  if (node.kind !== "object") return <JsonControl {...rest} field={field} path={path} at={at} name={name} />;
  return <div className="border-l-2 border-border pl-3"><ObjectFields field={field} path={path} /></div>;
}

/** Items that are drawn; a longer list is for the text. */
const ITEMS_MAX = 100;

function ListControl({ field, path, at, name, ...rest }: ControlProps) {
  const { tokens, set } = useEditing();
  const node = tokens.nodes[at];
  const item = field.item?.();
  if (!item) return null;
  if (node && node.kind !== "array") return <JsonControl {...rest} field={field} path={path} at={at} name={name} />;
  const many = node?.count ?? 0;
  return (
    <div className="flex flex-col gap-2 border-l-2 border-border pl-3">
      {node && many === 0 && <p className="text-text-3">an empty list</p>}
      {Array.from({ length: Math.min(many, ITEMS_MAX) }, (_, index) => (
        <FieldRow key={index} field={{ ...item, title: undefined, description: undefined }} path={[...path, index]} name={`${name}[${index}]`} />
      ))}
      {many > ITEMS_MAX && <p className="text-text-2">{many - ITEMS_MAX} more items are in the text</p>}
      <div className="flex gap-2">
        <AddButton name={`${name} item`} add={() => set([...path, many], blank(item))} />
        {!node && <button type="button" className="button" onClick={() => set(path, "[]")}>Empty list</button>}
      </div>
    </div>
  );
}

function UnionControl({ id, about, field, path, at, ...rest }: ControlProps) {
  const { tokens, set } = useEditing();
  const [chosen, setChosen] = useState<string>();
  const fitting = at < 0 ? undefined : branchOf(field, tokens, at);
  const branch = field.branches.find((each) => each.name === chosen) ?? fitting;
  const inside = branch?.field();
  return (
    <div className="flex flex-col gap-2 border-l-2 border-border pl-3">
      <select id={id} className="field max-w-80 self-start" aria-label={`${rest.name}: which of several`} aria-describedby={about} value={at < 0 ? "" : (branch?.name ?? "?")}
        onChange={(event) => {
          const next = field.branches.find((each) => each.name === event.target.value);
          if (!next) return;
          setChosen(next.name);
          set(path, blank(next.field()));
        }}>
        {at < 0 && <option value="">absent</option>}
        {at >= 0 && !branch && <option value="?" disabled>none of these</option>}
        {field.branches.map((each) => <option key={each.name} value={each.name}>{each.name}</option>)}
      </select>
      {inside && at >= 0 && (inside.kind === "object" ? <ObjectFields field={inside} path={path} /> : <Control {...rest} id={`${id}-in`} about={about} field={inside} path={path} at={at} />)}
      {!inside && at >= 0 && <JsonControl {...rest} id={`${id}-in`} about={about} field={field} path={path} at={at} />}
    </div>
  );
}

/** A part of the text as JSON. What is no JSON yet stays here and is not in the text. */
function JsonControl({ id, about, path, at, name }: ControlProps) {
  const { tokens, set, remove } = useEditing();
  const source = sourceAt(tokens, at);
  const [typed, setTyped] = useState<string>();
  useEffect(() => setTyped(undefined), [source]);
  const value = typed ?? source ?? "";
  const fault = typed === undefined || typed.trim() === "" ? undefined : tokensOf(typed).fault;
  return (
    <>
      <textarea id={id} className="field w-full font-mono text-xs" aria-describedby={about} aria-label={`${name}, JSON`} spellCheck={false} rows={Math.min(10, Math.max(1, value.split("\n").length))}
        value={value} placeholder="absent; JSON"
        onChange={(event) => {
          const next = event.target.value;
          if (next.trim() === "") {
            setTyped(undefined);
            if (source !== undefined) remove(path);
          } else if (tokensOf(next).fault) setTyped(next);
          else {
            setTyped(undefined);
            set(path, next.trim());
          }
        }} />
      {fault && <p className="text-xs text-wait">no JSON yet: {fault.says}; the text still has what was here</p>}
    </>
  );
}

function AddButton({ name, add }: { name: string; add(): void }) {
  return <button type="button" className="button self-start" onClick={add}>Add <span className="ml-1 font-mono text-xs"><Plain text={name} /></span></button>;
}
