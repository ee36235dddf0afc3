// Sorts rows by need once and then leaves them; `n` sorts anew.
import { useMemo, useState } from "react";
import { kept, misplaced } from "@/look/order";

export function useOrder<Row>(rows: readonly Row[], idOf: (row: Row) => string, by: (a: Row, b: Row) => number) {
  const [order, setOrder] = useState<readonly string[]>();
  const first = useMemo(() => [...rows].sort(by).map(idOf), [rows]); // eslint-disable-line react-hooks/exhaustive-deps
  if (order === undefined && rows.length > 0) setOrder(first);
  const now = order ?? first;
  return useMemo(() => {
    const moved = misplaced(rows, idOf, now, by);
    return { rows: kept(rows, idOf, now), fresh: { count: moved, text: "new order", show: () => setOrder(undefined) } };
  }, [rows, now]); // eslint-disable-line react-hooks/exhaustive-deps
}
