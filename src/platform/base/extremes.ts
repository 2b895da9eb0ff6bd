// The minimum and maximum of any number of values. Math.min(...values) throws a RangeError for more
// values than fit on the stack, about 120,000.

/** Infinity if there are no numbers. */
export function leastOf(numbers: Iterable<number>): number {
  let least = Number.POSITIVE_INFINITY;
  for (const number of numbers) if (number < least) least = number;
  return least;
}

/** -Infinity if there are no numbers. */
export function greatestOf(numbers: Iterable<number>): number {
  let greatest = Number.NEGATIVE_INFINITY;
  for (const number of numbers) if (number > greatest) greatest = number;
  return greatest;
}
