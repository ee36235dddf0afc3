// Placeholder until the next commit.
export default function Terminal({ name }: { worker: string; name: string; ended: boolean }) {
  return <p>{name}</p>;
}
