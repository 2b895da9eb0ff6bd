// The rules of the code base that a test can hold: who may import whom, where `process` may stand, how long a file may be,
// and that what the code can say (error codes, settings, metrics) is in the documents.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { settings, variableOf } from "../src/settings/config.ts";
import { dropTable, errorTable, warningTable } from "../src/base/errors.ts";
import { metricNames } from "../src/admin/metrics/metric-table.ts";

const root = path.resolve(import.meta.dirname, "..");

function filesBelow(...folders: string[]): string[] {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", ...folders], {
    cwd: root,
  });
  return listed
    .toString()
    .split("\n")
    .filter((file) => file !== "");
}

function read(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}

const sources = filesBelow("src").filter((file) => file.endsWith(".ts"));

// Which folders of src a folder may import from, beside itself, types.ts and errors.ts. events/ and intake/ read the scan table's
// layout; intake/ calls the rules and the record writer as plain functions, because a port between them would cost every event a call.
const mayImport: Record<string, string[]> = {
  // What a certificate file has to hold: the settings ask that too. How near one word is to another, and what of a text may be shown: the
  // intake asks that too.
  http: ["pem.ts", "letters-apart.ts", "without-keys.ts"],
  intake: ["events", "scan/table.ts", "letters-apart.ts", "without-keys.ts"],
  scan: [],
  events: ["scan/table.ts"],
  publish: [],
  projects: [],
  embedded: [],
  observe: [],
  // What streams must be and what projects are, so that it judges as the gateway does; who runs and what loads come as arguments.
  doctor: [
    "open-files.ts",
    "streams/ensure.ts",
    "publish/frame.ts",
    "nats/versions.ts",
    "streams/desired.ts",
    "projects/registry/bucket.ts",
    "projects/registry/bucket-state.ts",
    "projects/usage/events-before.ts",
    "projects/registry/hub-mirror.ts",
  ],
  // The shape of the numbers it shows; who connects, and where events are, come as arguments.
  live: ["base/sample.ts"],
  // The settings as a type, and the numbers a worker passes on; the gateway comes as an argument.
  workers: ["config.ts", "admin/metrics/metric-table.ts", "base/sample.ts"],
};

describe("imports point one way", () => {
  const stages = sources.filter((file) => (file.split("/")[1] ?? "") in mayImport);
  test.each(stages)("%s", (file) => {
    const folder = file.split("/")[1] ?? "";
    const allowed = ["types.ts", "errors.ts", `${folder}/`, ...(mayImport[folder] ?? [])];
    const imports = [...read(file).matchAll(/from "(\.[^"]+)"/g)].map((match) =>
      path.posix.relative("src", path.posix.join(path.posix.dirname(file), match[1] ?? "")),
    );
    for (const imported of imports) {
      expect(
        allowed.some((prefix) => imported.startsWith(prefix)),
        `${file} imports ${imported}`,
      ).toBe(true);
    }
  });

  test("types.ts has no runtime code", () => {
    expect(read("src/base/types.ts")).not.toMatch(/^export (const|function|class|let)|^import (?!type)/m);
  });
});

describe("a source file", () => {
  test.each(sources)("%s is short, opens with its job, and keeps to the house rules", (file) => {
    const text = read(file);
    expect(text.split("\n").length).toBeLessThanOrEqual(350);
    expect(text.startsWith("#!") ? text.slice(text.indexOf("\n") + 1) : text).toMatch(/^\/\/ /);
    expect(text).not.toMatch(/^export default/m);
    expect(text).not.toMatch(/\bas any\b|: any\b|@ts-ignore|@ts-expect-error/);
    if (file !== "src/main.ts") {
      expect(text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, "").replaceAll(/`[^`]*`|"[^"]*"/g, "")).not.toMatch(
        /(?<![.\w])process\./,
      );
    }
  });
});

const readme = read("README.md");

test.each(Object.entries(errorTable))("the README and the OpenAPI file know the error %s", (code, row) => {
  expect(readme).toMatch(new RegExp(`\\| ${row.status} \\| \`${code}\` \\|`));
  expect(read("openapi.yaml")).toMatch(new RegExp(`\\b${code}\\b`));
});

test.each(Object.entries(errorTable))(
  "the README says of the error %s when it comes, as the table does",
  (code, row) => {
    const line = readme.split("\n").find((one) => one.startsWith(`| ${row.status} | \`${code}\` |`)) ?? "";
    const said = line.split(" | ")[2] ?? "";
    expect(said.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", "")).toBe(row.when);
  },
);

test.each([...Object.keys(dropTable), ...Object.keys(warningTable)])(
  "the README says when the warning %s comes",
  (code) => {
    expect(readme).toMatch(new RegExp(`^\\| .*\\|.*warning.*\`${code}\``, "m"));
  },
);

test.each(Object.entries(settings))("the README knows the setting %s and its default", (name, row) => {
  const fallback = row.fallback === undefined ? "unset" : `\`${row.fallback}\``;
  expect(readme).toContain(`| \`${variableOf(name)}\` | ${fallback} |`);
});

test.each(metricNames.map((name) => [name]))("the README knows the metric %s", (name) => {
  expect(readme).toContain(`\`${name}\``);
});

test("one place imports the HTTP library, so that another build of it is swapped in there", () => {
  const importing = sources.filter((file) => /(?:from|import\() ?"uWebSockets\.js"/.test(read(file)));
  expect(importing).toEqual(["src/http/uws.ts"]);
});

test("no file names a package registry, and every dependency is pinned", () => {
  const hosts = new RegExp(["registry[.]npmjs", "deb[.]debian", "proxy[.]golang"].join("|"));
  for (const file of filesBelow()) expect(hosts.test(read(file)), file).toBe(false);
  const manifest = JSON.parse(read("package.json")) as Record<string, Record<string, string>>;
  for (const kind of ["dependencies", "devDependencies", "optionalDependencies"]) {
    for (const version of Object.values(manifest[kind] ?? {}))
      expect(version).toMatch(/^(npm:[\w.-]+@)?\d+\.\d+\.\d+$/);
  }
});

test.each(filesBelow("*.md"))("%s has no placeholder left", (file) => {
  // What stands in for a figure or a paragraph while a document is being written.
  expect(read(file)).not.toContain("@@");
});

test("every file that a script of package.json names is there", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const named = Object.values(scripts).flatMap((script) => script.match(/[\w./-]+\.(?:json|[cm]?[jt]s)\b/g) ?? []);
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((file) => !filesBelow().includes(file))).toEqual([]);
});
