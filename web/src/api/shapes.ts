// Answers of the plane that several pages share, under short names.
import type { components } from "muster-openapi";

type Schemas = components["schemas"];
export type Overview = Schemas["Overview"];
export type Need = Schemas["Need"];
export type FoundItem = Schemas["FoundItem"];
