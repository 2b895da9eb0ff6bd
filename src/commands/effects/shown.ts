import { Buffer } from "node:buffer";
import { Ascii, stringEnd } from "../../platform/base/ascii.ts";
import { iso } from "../../readers/effects/http/shapes.ts";
import { table } from "../terminal.ts";

export function card(title: string, rows: readonly (readonly [string, string])[]): string[] {
  return [title, ...table(rows.map((row) => ["", ...row]))];
}

export function propertyLines(json: string): string[] {
  const members = membersOf(json);
  if (members.length === 0) return ["  no properties"];
  return ["  properties", ...members.map((member) => `    ${member}`)];
}

export function shownTime(ms: number): string {
  return iso(ms)
    .replace("T", " ")
    .replace(/\.\d+Z$/, " UTC");
}

/** Returns the `"name":value` texts of a JSON object without white space between its tokens. */
function membersOf(text: string): string[] {
  const json = Buffer.from(text);
  const members: string[] = [];
  let depth = 0;
  let start = 1;
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case Ascii.Quote:
        at = stringEnd(json, at + 1);
        break;
      case Ascii.OpenBrace:
      case Ascii.OpenBracket:
        depth += 1;
        break;
      case Ascii.CloseBrace:
      case Ascii.CloseBracket:
        depth -= 1;
        break;
      case Ascii.Comma:
        if (depth !== 1) break;
        members.push(json.toString("utf8", start, at));
        start = at + 1;
        break;
    }
  }
  const last = json.toString("utf8", start, json.length - 1);
  return last === "" ? members : [...members, last];
}
