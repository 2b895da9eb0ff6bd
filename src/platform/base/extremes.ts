// The minimum and maximum of any number of values. Math.min(...values) throws a RangeError if the
// values exceed the stack, at about 120,000.

/** Returns the smallest number; Infinity if `numbers` is empty. */
export function leastOf(numbers: Iterable<number>): number {
  let least = Number.POSITIVE_INFINITY;
  for (const number of numbers) if (number < least) least = number;
  return least;
}

/** Returns the largest number; -Infinity if `numbers` is empty. */
export function greatestOf(numbers: Iterable<number>): number {
  let greatest = Number.NEGATIVE_INFINITY;
  for (const number of numbers) if (number > greatest) greatest = number;
  return greatest;
}
