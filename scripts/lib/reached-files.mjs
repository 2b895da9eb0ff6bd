// Finds the files of dist/ that an entry of a package imports. Needs a current dist/.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./project.mjs";

export function reachedFrom(entries) {
  const files = new Set();
  const packages = new Set();
  const visit = (file) => {
    if (files.has(file)) return;
    files.add(file);
    const text = readFileSync(join(root, file), "utf8");
    for (const [, name] of text.matchAll(/(?:from|import) ?\(?"([^"]+)"/g)) {
      if (name.startsWith(".")) visit(fileOf(file, name));
      else if (!name.startsWith("node:")) packages.add(packageOf(name));
    }
  };
  for (const entry of entries) visit(entry);
  return { files: [...files], packages: [...packages].sort() };
}

function fileOf(importing, name) {
  return join(dirname(importing), name).replace(/(?<!\.d)\.ts$/, ".d.ts");
}

function packageOf(name) {
  return name
    .split("/")
    .slice(0, name.startsWith("@") ? 2 : 1)
    .join("/");
}
