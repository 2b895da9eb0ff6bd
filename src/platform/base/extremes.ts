// Returns the lowest or highest of any number of values. `Math.min(...values)` throws a RangeError
// for more than about 120,000 values.

export function leastOf(numbers: Iterable<number>): number {
  let least = Number.POSITIVE_INFINITY;
  for (const number of numbers) if (number < least) least = number;
  return least;
}

export function greatestOf(numbers: Iterable<number>): number {
  let greatest = Number.NEGATIVE_INFINITY;
  for (const number of numbers) if (number > greatest) greatest = number;
  return greatest;
}
