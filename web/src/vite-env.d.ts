// What the build provides beside the sources.
declare module "virtual:licences" {
  const licences: { name: string; version: string; licence: string; text: string }[];
  export default licences;
}
