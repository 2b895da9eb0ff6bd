import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";

export const root = path.resolve(import.meta.dirname, "../..");

export interface Block {
  readonly file: string;
  readonly line: number;
  readonly language: string;
  readonly marks: readonly string[];
  readonly text: string;
}

export function markdownFiles(): string[] {
  const flags = ["--cached", "--others", "--exclude-standard"];
  const listed = execFileSync("git", ["ls-files", ...flags, "*.md"], { cwd: root }).toString();
  return [...new Set(listed.split("\n").filter((file) => file !== ""))].sort();
}

export function read(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}

export function blocksOf(file: string): Block[] {
  const blocks: Block[] = [];
  let open: { line: number; words: string[]; lines: string[] } | undefined;
  for (const [index, line] of read(file).split("\n").entries()) {
    const [, words] = /^```(.*)$/.exec(line) ?? [];
    if (words === undefined) open?.lines.push(line);
    else if (open === undefined) open = { line: index + 1, words: words.split(" "), lines: [] };
    else {
      const [language = "", ...marks] = open.words;
      const text = open.lines.join("\n");
      blocks.push({ file, line: open.line, language, marks, text });
      open = undefined;
    }
  }
  if (open !== undefined) throw new Error(`read ${file}: the block of line ${open.line} is open`);
  return blocks;
}

export function testName(block: Block): string | undefined {
  return block.marks.find((mark) => mark.startsWith("test="))?.slice("test=".length);
}

export function proseOf(file: string): string {
  const prose = read(file).replaceAll(/^```[^\n]*\n[\s\S]*?^```$/gm, "");
  return prose.replaceAll(/`[^`\n]*`/g, (code) => (code.includes("](") ? "" : code));
}

export function anchorsOf(file: string): Set<string> {
  const anchors = new Set<string>();
  const seen = new Map<string, number>();
  for (const [, heading = ""] of proseOf(file).matchAll(/^#{1,6} (.+)$/gm)) {
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");
    const slug = text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, "")
      .replaceAll(" ", "-");
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    anchors.add(times === 0 ? slug : `${slug}-${times}`);
  }
  return anchors;
}
