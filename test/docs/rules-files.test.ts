import { expect, test } from "vitest";
import { readProperties } from "../../src/rules/compile.ts";
import { parseRules } from "../../src/rules/parse.ts";
import { markdownFiles, read } from "./docs-kit.ts";

/** Blocks of YAML, also those in a list, which are indented. */
const blocks = markdownFiles().flatMap((file) =>
  [...read(file).matchAll(/^( *)```yaml\n([\s\S]*?)^\1```$/gm)]
    .map(([, indent = "", text = ""]) => ({
      file,
      text: text.replaceAll(`\n${indent}`, "\n").trim(),
    }))
    .filter(({ text }) => /^(?:rules|privacy|schemas):/m.test(text)),
);

test("every rules file in the documents is valid", () => {
  const wrong = blocks.flatMap(({ file, text }) => {
    const parsed = parseRules(text);
    return "rules" in parsed ? [] : [`${file}: ${parsed.errors[0]!.message}: ${text}`];
  });
  expect(wrong).toEqual([]);
  expect(blocks.length).toBeGreaterThanOrEqual(4);
});

test("the properties that keep_only always keeps are documented", () => {
  const [, names = ""] = /^\| `keep_only` \|.*Penstock reads: (.*?)\. /m.exec(
    read("docs/concepts/rules.md"),
  )!;
  expect(names).toBe(readProperties.map((name) => `\`${name}\``).join(", "));
});
