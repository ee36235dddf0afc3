// The head of a column, beside its value, where a table has become lines on a phone.

export const Narrow = ({ children }: { children: string }) => <span className="text-text-3 sm:hidden">{children} </span>;
