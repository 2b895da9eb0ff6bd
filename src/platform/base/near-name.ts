const twoTyposFrom = 6;

export function typosMax(name: string): number {
  return name.length < twoTyposFrom ? 1 : 2;
}

export function nearest<Candidate>(
  candidates: Iterable<Candidate>,
  distanceOf: (candidate: Candidate) => number,
  most: number,
): Candidate | undefined {
  let found: Candidate | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const distance = distanceOf(candidate);
    if (distance > most || distance >= least) continue;
    found = candidate;
    least = distance;
  }
  return found;
}

/**
 * Returns how many letters must be added, removed, changed or swapped. Returns Infinity if the
 * difference of the lengths is greater than `most`.
 */
export function lettersApart(left: string, right: string, most = Number.POSITIVE_INFINITY): number {
  if (Math.abs(left.length - right.length) > most) return Number.POSITIVE_INFINITY;
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
