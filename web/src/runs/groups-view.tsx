// A run with more steps than can be read one by one: its steps by caller and function, as the plane
// groups them.
export function GroupsView({ total }: { run: string; total: number; phone: boolean }) {
  return <p>{total}</p>;
}
