// Counts how many slips of the hand one word is from another. It knows no words.

/**
 * How many letters have to be added, removed, changed, or swapped with their neighbour, to make one
 * word of the other. Meant for short words: the work is the product of their lengths.
 */
export function lettersApart(left: string, right: string): number {
  const width = right.length + 1;
  const rows = new Uint16Array(3 * width);
  for (let column = 0; column < width; column++) rows[column] = column;
  let [before, last, next] = [2 * width, 0, width];
  for (let line = 1; line <= left.length; line++) {
    rows[next] = line;
    for (let column = 1; column < width; column++) {
      const isSame = left[line - 1] === right[column - 1];
      let least = Math.min(
        rows[last + column]! + 1,
        rows[next + column - 1]! + 1,
        rows[last + column - 1]! + (isSame ? 0 : 1),
      );
      const isSwapped =
        line > 1 &&
        column > 1 &&
        left[line - 1] === right[column - 2] &&
        left[line - 2] === right[column - 1];
      if (isSwapped) least = Math.min(least, rows[before + column - 2]! + 1);
      rows[next + column] = least;
    }
    [before, last, next] = [last, next, before];
  }
  return rows[last + width - 1]!;
}
