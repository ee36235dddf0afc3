// The chain of steps that decided how long the run took: from the end backwards, always to the
// child that ended last. While the run goes on it is the chain so far. Reused steps took no time
// and are never on it. Knows nothing of drawing.
import { type Forest, type Step, childrenOf, has, isOpen, lastKnown } from "./forest";

/** A stretch of the path: in this step, from when to when. */
export type Stretch = { index: number; from: number; to: number };

export type Critical = { steps: ReadonlySet<number>; stretches: Stretch[] };

const endOf = (step: Step, now: number) => step.ended ?? (isOpen(step) ? now : lastKnown(step));

export function criticalPath(forest: Forest, now: number): Critical {
  const stretches: Stretch[] = [];
  // The root that ended last decides; detached members are roots of their own only when they are.
  let last: Step | undefined;
  for (const index of forest.roots) {
    const step = forest.steps[index];
    if (step && (!last || endOf(step, now) > endOf(last, now))) last = step;
  }
  if (!last) return { steps: new Set(), stretches };
  const work: { step: Step; until: number }[] = [{ step: last, until: endOf(last, now) }];
  while (work.length > 0) {
    const { step, until } = work.pop() as { step: Step; until: number };
    const children = childrenOf(forest, step.index)
      .map((index) => forest.steps[index] as Step)
      .filter((child) => !has(child, "replayed") && endOf(child, now) <= until && endOf(child, now) > child.created)
      .sort((a, b) => endOf(b, now) - endOf(a, now) || b.index - a.index);
    let at = until;
    for (const child of children) {
      const end = endOf(child, now);
      if (end > at) continue;
      if (end < at) stretches.push({ index: step.index, from: end, to: at });
      work.push({ step: child, until: end });
      at = Math.max(child.created, step.created);
      if (at <= step.created) break;
    }
    if (at > step.created) stretches.push({ index: step.index, from: step.created, to: at });
    else if (step.created === until) stretches.push({ index: step.index, from: until, to: until });
  }
  stretches.sort((a, b) => a.from - b.from || a.index - b.index);
  return { steps: new Set(stretches.map((stretch) => stretch.index)), stretches };
}
