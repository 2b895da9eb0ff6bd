// The rule of a line's width, on lines that are too wide and on those that may be.

import { expect, test } from "vitest";
import { wideLines } from "./wide-lines.ts";

const tooWide: Record<string, string> = {
  "a comment": "// one two three four",
  "a comment that holds a quote": `// one "two" three fo`,
  "a comment that holds a path": "// one two/three four",
  "a comment that holds an arrow": "// one <two> => three",
  "a comment in a block": "/**\n * one `two` three four\n */",
  "a comment after code": `f("x"); // one two three`,
  "a comment after an apostrophe in another": "// don't\n// one two three four",
  "a comment after a template of two lines": "f(`\n`);\n// one two three four",
  "a comment after a regular expression with a quote": '/["/]/;\n// one two three four',
  "a comment after a division": "a = b / c;\n// one two / three four",
  "code beside a text": `callOf(aaaaaaaa, "x", bb)`,
};

test.each(Object.entries(tooWide))("%s is too wide", (_name, source) => {
  expect(wideLines(source, 20)).toEqual([source.split("\n").find((line) => line.length > 20)]);
});

const mayBeWide: Record<string, string> = {
  "a line as wide as it may be": "// one two three fou",
  "a text": `f("one two three four five");`,
  "a text with a quote in it": `f("one \\" // two three four");`,
  "a text that looks like a comment": `f("// one two three four");`,
  "a template": "f(`one two three four five`);",
  "a template of several lines": "f(`\none two three four five\n// one two three four\n`);",
  "a template in a template": "f(`one $" + "{g(`} two $" + "{h} three`)} four five`);",
  "a regular expression": "f(/one two [/] three four/u);",
  "a word that fits into no line": "// https://example.com/one/two",
};

test.each(Object.entries(mayBeWide))("%s may be wide", (_name, source) => {
  expect(wideLines(source, 20)).toEqual([]);
});
