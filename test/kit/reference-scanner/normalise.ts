// Writes the plain form of a JSON text as described in table.ts. It must not share code with the
// addon.

import { depthMax } from "../../../src/records/table.ts";

const token = /[ \t\n\r]*("(?:[^"\\]|\\.)*"|[{}[\]:,]|[-+.\w]+)/y;

export function normaliseText(text: string): string | undefined {
  let at = 0;

  function next(): string {
    token.lastIndex = at;
    const found = token.exec(text)?.[1] ?? "";
    if (found !== "") at = token.lastIndex;
    return found;
  }

  function members(depth: number): string {
    const values = new Map<string, string>();
    for (let name = next(); name !== "}"; name = next()) {
      if (name === ",") name = next();
      const key = plainString(name);
      next();
      values.delete(key);
      values.set(key, value(next(), depth));
    }
    return [...values].map(([key, text]) => `${key}:${text}`).join(",");
  }

  function elements(depth: number): string {
    const values: string[] = [];
    for (let first = next(); first !== "]"; first = next())
      values.push(value(first === "," ? next() : first, depth));
    return values.join(",");
  }

  function value(first: string, depth: number): string {
    if (first === "{" || first === "[") {
      if (depth === depthMax) throw new RangeError("too deep");
      return first === "{" ? `{${members(depth + 1)}}` : `[${elements(depth + 1)}]`;
    }
    return first.startsWith('"') ? plainString(first) : first;
  }

  try {
    JSON.parse(text);
    return value(next(), 0);
  } catch {
    return undefined;
  }
}

function plainString(written: string): string {
  const text = JSON.parse(written) as string;
  return JSON.stringify(text.replaceAll("\0", "\ufffd").toWellFormed());
}
