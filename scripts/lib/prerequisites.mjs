// Checks the programs that must be on the host. One error lists all missing programs.

import { execFileSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { isAtLeast, root, SetupError } from "./project.mjs";

const rows = [
  { program: "npm", debian: "npm", fedora: "nodejs-npm", macos: "brew install node" },
  { program: "python3", debian: "python3", fedora: "python3", macos: "xcode-select --install" },
  { program: "make", debian: "make", fedora: "make", macos: "xcode-select --install" },
  { program: "g++", debian: "g++", fedora: "gcc-c++", macos: "xcode-select --install" },
];

export function requireNode() {
  if (!isAtLeast(process.versions.node.split(".").map(Number), [18])) {
    throw new SetupError(`Node 18 or newer is needed to set up: this is ${process.versions.node}`);
  }
}

/** Throws a SetupError if the addons cannot be built here. */
export function requirePrograms() {
  // make splits paths at spaces despite quoting, and requires escapes for other characters.
  if (/[\s"'`$#%&;:=|()<>*?\\[\]{}!~]/.test(root))
    throw new SetupError(
      `the path of the checkout has a space or another character that make does not accept: ${root}\n  move the checkout to another path`,
    );
  const missing = rows.filter((row) => findOnPath(row.program) === undefined);
  const oldCompiler =
    missing.some((row) => row.program === "g++") || compilesCpp17() ? [] : [rows[3]];
  const wanted = [...missing, ...oldCompiler];
  if (wanted.length === 0) return;
  const named = [
    ...missing.map((row) => row.program),
    ...oldCompiler.map(() => "a g++ that compiles C++17"),
  ];
  throw new SetupError(
    [
      `missing on this host: ${named.join(", ")}`,
      `  Debian, Ubuntu:  sudo apt-get install ${wanted.map((row) => row.debian).join(" ")}`,
      `  Fedora:          sudo dnf install ${wanted.map((row) => row.fedora).join(" ")}`,
      `  macOS:           ${[...new Set(wanted.map((row) => row.macos))].join("; ")}`,
    ].join("\n"),
  );
}

export function findOnPath(program) {
  for (const folder of (process.env.PATH ?? "").split(":")) {
    const path = join(folder || ".", program);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {}
  }
  return undefined;
}

function compilesCpp17() {
  try {
    const input = "#include <string_view>\nstatic_assert(__cplusplus >= 201703L);\n";
    execFileSync("g++", ["-std=c++17", "-fsyntax-only", "-x", "c++", "-"], {
      input,
      stdio: ["pipe", "ignore", "ignore"],
    });
    return true;
  } catch {
    return false;
  }
}
