// What a person says with a decision, below what the decision would do. Writes into the wish.
import { useState } from "react";
import type { ActConsequence } from "../shapes";
import { Consequence } from "./consequence";

export function DecideForm({ would, wish, label }: { would: ActConsequence; wish: { feedback: string }; label: string }) {
  const [text, setText] = useState(wish.feedback);
  return (
    <div className="flex flex-col gap-2" data-keys="off">
      <Consequence would={would} />
      <label className="flex flex-col gap-1">
        <span className="text-text-2">{label}</span>
        <textarea className="field w-full" rows={3} value={text} maxLength={64 * 1024}
          onChange={(event) => {
            wish.feedback = event.target.value;
            setText(event.target.value);
          }} />
      </label>
    </div>
  );
}
