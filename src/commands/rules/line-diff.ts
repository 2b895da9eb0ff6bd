// Compares two texts by lines.

type DiffLine = readonly [sign: " " | "-" | "+", line: string];

/** Maximum cells of the table. Larger texts are shown as removed and added as a whole. */
const cellsMax = 4_000_000;
const contextLines = 2;

/** Returns the changed lines with two lines before and after, and `…` between distant changes. */
export function changedLines(before: string, after: string): string[] {
  const lines = compareLines(linesOf(before), linesOf(after));
  const isNear = lines.map((_, index) =>
    lines
      .slice(Math.max(0, index - contextLines), index + contextLines + 1)
      .some(([sign]) => sign !== " "),
  );
  return lines.flatMap(([sign, line], index) => {
    if (isNear[index]) return [`${sign} ${line}`.trimEnd()];
    return isNear[index - 1] && isNear.indexOf(true, index) !== -1 ? ["…"] : [];
  });
}

function linesOf(text: string): string[] {
  if (text === "") return [];
  return text.replace(/\r?\n$/, "").split(/\r?\n/);
}

/** Returns all lines of both texts, with the fewest removed and added lines. */
export function compareLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  let start = 0;
  while (start < Math.min(before.length, after.length) && before[start] === after[start]) start++;
  let [end, otherEnd] = [before.length, after.length];
  while (end > start && otherEnd > start && before[end - 1] === after[otherEnd - 1]) {
    end--;
    otherEnd--;
  }
  const same = (line: string): DiffLine => [" ", line];
  return [
    ...before.slice(0, start).map(same),
    ...compareMiddle(before.slice(start, end), after.slice(start, otherEnd)),
    ...before.slice(end).map(same),
  ];
}

/** Finds the longest common subsequence with a table of the lengths from each pair of lines on. */
function compareMiddle(before: readonly string[], after: readonly string[]): DiffLine[] {
  const width = after.length + 1;
  const removed = before.map((line): DiffLine => ["-", line]);
  const added = after.map((line): DiffLine => ["+", line]);
  if ((before.length + 1) * width > cellsMax) return [...removed, ...added];
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let row = before.length - 1; row >= 0; row--)
    for (let column = after.length - 1; column >= 0; column--)
      lengths[row * width + column] =
        before[row] === after[column]
          ? lengths[(row + 1) * width + column + 1]! + 1
          : Math.max(lengths[(row + 1) * width + column]!, lengths[row * width + column + 1]!);
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < before.length && column < after.length) {
    if (before[row] === after[column]) {
      lines.push([" ", before[row]!]);
      row++;
      column++;
    } else if (lengths[(row + 1) * width + column]! >= lengths[row * width + column + 1]!)
      lines.push(removed[row++]!);
    else lines.push(added[column++]!);
  }
  return [...lines, ...removed.slice(row), ...added.slice(column)];
}
