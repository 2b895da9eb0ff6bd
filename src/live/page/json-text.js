// Formats valid JSON text without JSON.parse, which rounds numbers of more than 15 digits.

const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const indent = "  ";

export function indented(text) {
  let out = "";
  let depth = 0;
  let last = "";
  const newLine = () => `\n${indent.repeat(depth)}`;
  for (const [token] of text.matchAll(tokens)) {
    const opens = last === "{" || last === "[";
    if (token === "}" || token === "]") {
      depth--;
      out += opens ? token : newLine() + token;
    } else {
      if (opens || last === ",") out += newLine();
      if (token === "{" || token === "[") depth++;
      out += token === ":" ? ": " : shown(token);
    }
    last = token;
  }
  return out;
}

export function memberText(text, name) {
  let depth = 0;
  let key = "";
  let start;
  for (const { 0: token, index } of text.matchAll(tokens)) {
    if (token === "{" || token === "[") depth++;
    if (token === "}" || token === "]") depth--;
    const ends = depth === 0 || (depth === 1 && token === ",");
    if (ends && start !== undefined) return text.slice(start, index).trim();
    if (depth !== 1) continue;
    if (token === ":" && start === undefined && key === name) start = index + 1;
    else if (token.startsWith('"')) key = JSON.parse(token);
  }
  return undefined;
}

function shown(token) {
  return token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token;
}
