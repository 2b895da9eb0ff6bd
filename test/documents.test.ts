// Checks of all Markdown files that need no server. Each test lists every offender.

import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { anchorsOf, blocksOf, markdownFiles, proseOf, read, root } from "./docs/docs-kit.ts";

const files = markdownFiles();

function findings(check: (file: string) => readonly string[]): string[] {
  return files.flatMap((file) => check(file).map((finding) => `${file}: ${finding}`));
}

function brokenLinks(file: string): string[] {
  const broken: string[] = [];
  for (const [, target = ""] of proseOf(file).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue;
    const [place = "", anchor] = target.split("#");
    const to = place === "" ? file : path.posix.join(path.posix.dirname(file), place);
    const isThere = existsSync(path.join(root, to));
    const hasAnchor =
      anchor === undefined || (to.endsWith(".md") && isThere && anchorsOf(to).has(anchor));
    if (!isThere || !hasAnchor) broken.push(target);
  }
  return broken;
}

test("every link of a document resolves", () => {
  expect(findings(brokenLinks)).toEqual([]);
});

test("the map in the README names every page of docs/", () => {
  const named = new Set(
    [...read("README.md").matchAll(/\]\((docs\/[^)#]+)/g)].map(([, page]) => page),
  );
  expect(files.filter((file) => file.startsWith("docs/") && !named.has(file))).toEqual([]);
});

test.each(["docs/ARCHITECTURE.md", "docs/internals/decisions.md", "docs/internals/lifecycles.md"])(
  "every source file that %s names exists",
  (file) => {
    const named = [...read(file).matchAll(/`([\w./-]+\/[\w.-]+\.(?:ts|cc|md))`/g)].map(
      ([, at = ""]) => at,
    );
    const isThere = (at: string) =>
      ["src", ""].some((folder) => existsSync(path.join(root, folder, at)));
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((at) => !isThere(at))).toEqual([]);
  },
);

function unmarkedShellBlocks(file: string): string[] {
  const shells = blocksOf(file).filter(({ language }) =>
    /^(?:sh|bash|shell|console|zsh)$/.test(language),
  );
  const isMarked = (marks: readonly string[]) =>
    marks.length === 1 && /^(?:not-run|test=\w+)$/.test(marks[0] ?? "");
  const unmarked = shells.filter(({ language, marks }) => language !== "sh" || !isMarked(marks));
  return unmarked.map(({ line, text }) => `line ${line}: ${text.split("\n")[0]}`);
}

test("every shell block is marked test=<name> or not-run", () => {
  expect(findings(unmarkedShellBlocks)).toEqual([]);
});

function unnamedPackages(file: string): string[] {
  const lines = read(file).split("\n");
  const programs = blocksOf(file).filter(({ language }) => language === "js");
  return programs.flatMap(({ line, text }) => {
    const above = lines.slice(0, line - 1);
    const section = above.slice(above.findLastIndex((one) => one.startsWith("#"))).join("\n");
    const [, said = ""] = [...section.matchAll(/`npm (?:i|install) ([^`]+)`/g)].at(-1) ?? [];
    const packages = [...text.matchAll(/ from "([@\w/-]+)";$/gm)].map(([, name = ""]) => name);
    const words = said.split(" ");
    const isSaid = (name: string): boolean => {
      // Penstock's own packages are files of a release, and are not in a registry.
      const [, own] = /^@penstock\/(\w+)$/.exec(name) ?? [];
      const file = own === undefined ? undefined : new RegExp(`\\bpenstock-${own}-[\\d.]+\\.tgz`);
      return file?.test(lines.join("\n")) ?? words.includes(name);
    };
    return packages.filter((name) => !isSaid(name));
  });
}

test("every JavaScript example names the packages to install", () => {
  expect(findings(unnamedPackages)).toEqual([]);
});

function unlabelledCommands(file: string): string[] {
  const plain = blocksOf(file).filter(({ language }) => language === "" || language === "text");
  const commands = plain.filter(({ text }) =>
    /^(?:npm|npx|curl|node|docker|kubectl|nats) /m.test(text),
  );
  return commands.map(({ line }) => `line ${line}`);
}

test("every block with a command has a language", () => {
  expect(findings(unlabelledCommands)).toEqual([]);
});
