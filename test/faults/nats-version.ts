export function isOlder(version: string, than: string): boolean {
  const [left, right] = [numbersOf(version), numbersOf(than)];
  const differing = left.findIndex((number, place) => number !== right[place]);
  return differing >= 0 && left[differing]! < right[differing]!;
}

function numbersOf(text: string): number[] {
  const match = /(\d+)\.(\d+)\.(\d+)/.exec(text);
  if (match === null) throw new Error(`read a version: none in "${text}"`);
  return match.slice(1).map(Number);
}
