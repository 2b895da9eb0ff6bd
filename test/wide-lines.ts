// Which lines of a TypeScript file are too wide. Strings, templates and regular expressions do not
// count, nor does a word of a comment that does not fit into a line of its own.

/** A wide line whose words could stand on two: the formatter leaves comments as they are. */
export function wideLines(source: string, widthMax: number): string[] {
  const lines = source.split("\n");
  return withoutTexts(source)
    .split("\n")
    .flatMap((bare, index) => (isTooWide(bare, widthMax) ? [lines[index] ?? ""] : []));
}

function isTooWide(line: string, widthMax: number): boolean {
  if (line.length <= widthMax) return false;
  const indent = line.length - line.trimStart().length;
  return !line.split(/\s+/).some((word) => indent + "// ".length + word.length > widthMax);
}

const comment = /\/\/.*|\/\*[\s\S]*?\*\//y;
const quoted = /"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'/y;
const regex = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
/** What stands before a regular expression; after anything else a slash divides. */
const beforeRegex = /(?:^|[(,=:[!&|?{};+>]|\b(?:return|case|typeof))\s*$/;

/** The source, without what stands in texts. Comments stay, and so does every end of a line. */
function withoutTexts(source: string): string {
  let bare = "";
  for (let at = 0; at < source.length; ) {
    const remark = matchAt(comment, source, at);
    const end = remark === "" ? endOfText(source, at, bare) : at + remark.length;
    const isText = remark === "" && end > at + 1;
    const part = source.slice(at, end);
    bare += isText ? part.replaceAll(/[^\n]/g, "") : part;
    at = end;
  }
  return bare;
}

/** The end of the text that begins at `at`; `at + 1` where none does. */
function endOfText(source: string, at: number, before: string): number {
  if (source[at] === "`") return endOfTemplate(source, at);
  const isRegex = source[at] === "/" && beforeRegex.test(before.slice(-40));
  const text = matchAt(isRegex ? regex : quoted, source, at);
  return at + Math.max(1, text.length);
}

function endOfTemplate(source: string, start: number): number {
  let at = start + 1;
  while (at < source.length && source[at] !== "`") {
    if (source[at] === "\\") at += 2;
    else at = source.startsWith("${", at) ? endOfPlace(source, at + 2) : at + 1;
  }
  return at + 1;
}

/** The end of the expression in a template that begins at `start`. */
function endOfPlace(source: string, start: number): number {
  let depth = 1;
  let at = start;
  while (at < source.length && depth > 0) {
    const from = at;
    at = endOfText(source, at, source.slice(start, at));
    if (source[from] === "{") depth++;
    if (source[from] === "}") depth--;
  }
  return at;
}

function matchAt(pattern: RegExp, source: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0] ?? "";
}
