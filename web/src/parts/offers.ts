// Which acts can be done now: buttons on screen offer theirs, the palette lists them.

export type Offer = { name: string; command?: string; hint?: string; barred?: string; open(): void };

const offers = new Set<Offer>();

/** Offers an act while its button is there; answers how to take it back. */
export function offerAct(offer: Offer): () => void {
  offers.add(offer);
  return () => void offers.delete(offer);
}

export const offersNow = (): Offer[] => [...offers];
