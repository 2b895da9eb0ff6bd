// The rules of the code base that a test can hold: who may import whom, where `process` may stand,
// how long a file may be, and that what the code can say (error codes, settings, metrics) is in the
// documents.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { metricNames, metricTable } from "../src/admin/metrics/metric-table.ts";
import { errorTable, itemErrorCodes } from "../src/base/errors.ts";
import { dropTable, warningTable } from "../src/base/warnings.ts";
import { settings, variableOf } from "../src/settings/config.ts";
import { generatedPages } from "../tools/docs/pages.ts";
import { wideLines } from "./wide-lines.ts";

const root = path.resolve(import.meta.dirname, "..");

function filesBelow(...folders: string[]): string[] {
  const listed = execFileSync(
    "git",
    ["ls-files", "--cached", "--others", "--exclude-standard", ...folders],
    {
      cwd: root,
    },
  );
  return listed
    .toString()
    .split("\n")
    .filter((file) => file !== "");
}

function read(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}

const sources = filesBelow("src").filter((file) => file.endsWith(".ts"));

// Which folders of src a folder may import from, beside itself. Ground floor: base, nats, postgres
// and reading. On it stand the data path (http, intake, scan, events, publish) and the store side
// (streams, projects), which do not know each other; the operator's side (admin, cli) stands on
// whatever it shows; app wires them all, and only main.ts imports app.
const everythingButApp = [
  "admin",
  "base",
  "cli",
  "consumer",
  "effects",
  "embedded",
  "events",
  "http",
  "intake",
  "nats",
  "postgres",
  "projects",
  "publish",
  "reading",
].concat(["scan", "settings", "sinks", "streams", "workers"]);
const mayImport: Record<string, string[]> = {
  base: [],
  nats: ["base"],
  postgres: ["base"],
  reading: ["base", "nats"],
  settings: ["base", "nats"],
  http: ["base"],
  scan: ["base"],
  // Events and intake read the layout of the scan table. Intake calls the rules and the record
  // writer as plain functions, because a port between them would cost every event a call.
  events: ["base", "scan/table.ts"],
  intake: ["base", "events", "scan/table.ts"],
  publish: ["base", "nats"],
  streams: ["base", "nats"],
  projects: ["base", "nats"],
  embedded: ["base"],
  // The process beside the gateway: reads what the data path has written, with the same scanner.
  effects: ["base", "nats", "postgres", "reading", "scan", "events"],
  // Another process beside it, which reads the streams as the effects do.
  sinks: ["base", "nats", "postgres", "reading", "scan", "events"],
  // What a program reads events with; its files go to whoever installs it.
  consumer: ["base", "nats"].concat(
    ["frame-schema.ts", "resume.ts", "stored-stream.ts", "stream-erasures.ts", "trail.ts"].map(
      (file) => `reading/${file}`,
    ),
  ),
  // The settings as a type, and the table of metrics that a supervisor sums up.
  workers: ["base", "settings", "admin/metrics/metric-table.ts"],
  admin: everythingButApp,
  cli: everythingButApp,
  app: everythingButApp,
};

describe("imports point one way", () => {
  const inFolders = sources.filter((file) => file.split("/").length > 2);
  test.each(inFolders)("%s", (file) => {
    const folder = file.split("/")[1] ?? "";
    const allowed = [folder, ...(mayImport[folder] ?? [])];
    for (const imported of importsOf(file)) {
      expect(
        allowed.some((place) => imported === place || imported.startsWith(`${place}/`)),
        `${file} imports ${imported}`,
      ).toBe(true);
    }
  });

  test("every folder of src has its rule", () => {
    expect([...new Set(inFolders.map((file) => file.split("/")[1]))].sort()).toEqual(
      Object.keys(mayImport).sort(),
    );
  });

  test("no file imports itself by way of others", () => {
    const state = new Map<string, "open" | "done">();
    const visit = (file: string, way: readonly string[]): void => {
      if (state.get(file) === "done") return;
      expect(state.get(file), `${[...way, file].join(" -> ")}`).not.toBe("open");
      state.set(file, "open");
      for (const imported of importsOf(file)) visit(`src/${imported}`, [...way, file]);
      state.set(file, "done");
    };
    for (const file of sources) visit(file, []);
  });

  test("types.ts has no runtime code", () => {
    expect(read("src/base/types.ts")).not.toMatch(
      /^export (const|function|class|let)|^import (?!type)/m,
    );
  });
});

/** The files of src that a file imports, be it types or values, as paths below src. */
function importsOf(file: string): string[] {
  const named = read(file).matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g);
  return [...named].map((match) =>
    path.posix.relative("src", path.posix.join(path.posix.dirname(file), match[1] ?? "")),
  );
}

describe("a source file", () => {
  test.each(sources)("%s is short, opens with its job, and keeps to the house rules", (file) => {
    const text = read(file);
    expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(350);
    expect(text.startsWith("#!") ? text.slice(text.indexOf("\n") + 1) : text).toMatch(/^\/\/ /);
    expect(text).not.toMatch(/^export default/m);
    // A comment says what its subject is.
    expect(text).not.toMatch(/^\s*(\/\/|\/\*\*|\/\*) Of /m);
    expect(text).not.toMatch(/\bas any\b|: any\b|@ts-ignore|@ts-expect-error/);
    if (file !== "src/main.ts") {
      expect(
        text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, "").replaceAll(/`[^`]*`|"[^"]*"/g, ""),
      ).not.toMatch(/(?<![.\w])process\./);
    }
  });
});

test.each([...generatedPages()])("%s is as new as its table", (file, text) => {
  expect(read(file), "older than its table: npm run docs").toBe(text);
});

test("the README is short", () => {
  expect(read("README.md").split("\n").length).toBeLessThanOrEqual(150);
});

test.each(Object.entries(errorTable))(
  "the documents and the OpenAPI file know the error %s, and when it comes",
  (code, row) => {
    const page = read("docs/reference/errors.md");
    expect(page).toMatch(new RegExp(`\\| ${row.status} \\| \\[\`${code}\`\\]\\(#${code}\\) \\|`));
    expect(plainText(sectionOf(page, code))).toContain(plainText(row.when).slice(1));
    expect(plainText(sectionOf(page, code))).toContain(plainText(row.remedy));
    expect(read("openapi.yaml")).toMatch(new RegExp(`\\b${code}\\b`));
  },
);

test.each(Object.entries({ ...dropTable, ...warningTable }))(
  "the documents say when the warning %s comes, and what becomes of the event",
  (code, row) => {
    const section = plainText(sectionOf(read("docs/reference/errors.md"), code));
    expect(section).toContain(plainText(row.when).slice(1));
    expect(read("docs/reference/event-fields.md")).toMatch(
      new RegExp(`^\\| .*\\|.*warning.*\`${code}\``, "m"),
    );
  },
);

test.each(itemErrorCodes)("the page of an event's fields says when it is in error: %s", (code) => {
  expect(read("docs/reference/event-fields.md")).toMatch(
    new RegExp(`^\\| .*\\|.*(?:error|drop),? .*\`${code}\``, "m"),
  );
});

test.each(Object.entries(settings))(
  "the documents know the setting %s and its default",
  (name, row) => {
    const fallback = row.fallback === undefined ? "unset" : `\`${row.fallback}\``;
    const line = read("docs/reference/settings.md")
      .split("\n")
      .find((one) => one.startsWith(`| \`${variableOf(name)}\` | ${fallback}`));
    expect(plainText(line ?? "")).toContain(plainText(row.why).slice(1));
  },
);

test.each(metricNames.map((name) => [name]))("the documents know the metric %s", (name) => {
  const line = read("docs/reference/metrics.md")
    .split("\n")
    .find((one) => one.startsWith(`| \`${name}\` | ${metricTable[name].type} |`));
  expect(plainText(line ?? "")).toContain(plainText(metricTable[name].help));
});

// The formatter breaks code, and leaves comments and texts as wide as they are. A text may be
// wider, because one that is cut in two is not found by who searches for it.
test.each(filesBelow("*.ts", "*.mjs", "*.js"))("%s is at most 100 wide, but for texts", (file) => {
  expect(wideLines(read(file), 100)).toEqual([]);
});

/** What stands below the heading, up to the next one. */
function sectionOf(page: string, heading: string): string {
  return page.split(/^#+ /m).find((one) => one.startsWith(`${heading}\n`)) ?? "";
}

/** Without links, code marks and escapes. */
function plainText(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[`\\]/g, "")
    .replaceAll("&lt;", "<");
}

// A folder of tests is one of src or tools, or one for what needs several of them.
const testFolders = new Set([
  ...filesBelow("src", "tools").map((file) => path.posix.dirname(file).replace(/^src\//, "")),
  ...["", "clients", "deploy", "docs", "durability", "gateway", "setup"],
]);

// Tables of cases that have grown; no other file is to.
const longTests = new Set([
  "test/events/event-time.test.ts",
  "test/http/body/unpacking.forms.test.ts",
  "test/http/sdk-requests.test.ts",
  "test/openapi.test.ts",
]);

test.each(
  filesBelow("test/**/*.ts", "testkit/**/*.ts", "tools/**/*.ts").filter(
    (file) => !longTests.has(file),
  ),
)("%s has at most 350 lines", (file) => {
  expect(read(file).trimEnd().split("\n").length).toBeLessThanOrEqual(350);
});

test.each(filesBelow("test/**/*.test.ts"))("%s lies where what it tests lies", (file) => {
  expect(testFolders).toContain(path.posix.relative("test", path.posix.dirname(file)));
  // A unit, and a topic where it has several files.
  expect(path.posix.basename(file)).toMatch(/^[a-z0-9-]+(\.[a-z0-9-]+)?\.test\.ts$/);
});

test.each(filesBelow("tools/**/*.ts", "testkit/**/*.ts", "scripts/**/*.mjs", "src/**/*.ts"))(
  "%s needs no test",
  (file) => {
    const named = [...read(file).matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)];
    const imported = named.map((match) =>
      path.posix.join(path.posix.dirname(file), match[1] ?? ""),
    );
    expect(imported.filter((one) => one.startsWith("test/"))).toEqual([]);
  },
);

test("nothing is exported that no other file names", () => {
  const files = filesBelow("*.ts", "*.mjs", "*.js");
  const naming = new Map<string, Set<string>>();
  for (const file of files) {
    for (const word of new Set(read(file).match(/[\w$]+/g)))
      naming.set(word, (naming.get(word) ?? new Set()).add(file));
  }
  const declared = /^export (?:async )?(?:function\*?|class|const|let|interface|type) ([\w$]+)/gm;
  const unused = files.flatMap((file) =>
    [...read(file).matchAll(declared)]
      .filter(([, name = ""]) => naming.get(name)?.size === 1)
      .map(([, name]) => `${file}: ${name}`),
  );
  expect(unused).toEqual([]);
});

test("one place imports the HTTP library, so that another build of it is swapped in there", () => {
  const importing = sources.filter((file) =>
    /(?:from|import\() ?"uWebSockets\.js"/.test(read(file)),
  );
  expect(importing).toEqual(["src/http/uws.ts"]);
});

test("no file names a package registry, and every dependency is pinned", () => {
  const hosts = new RegExp(["registry[.]npmjs", "deb[.]debian", "proxy[.]golang"].join("|"));
  for (const file of filesBelow()) expect(hosts.test(read(file)), file).toBe(false);
  const manifests = ["package.json", "tools/package.json"].map(
    (file) => JSON.parse(read(file)) as Record<string, Record<string, string>>,
  );
  const kinds = ["dependencies", "devDependencies", "optionalDependencies"];
  for (const [manifest, kind] of manifests.flatMap((one) =>
    kinds.map((kind) => [one, kind] as const),
  )) {
    for (const version of Object.values(manifest[kind] ?? {}))
      expect(version).toMatch(/^(npm:[\w.-]+@)?\d+\.\d+\.\d+$/);
  }
});

test.each(filesBelow("*.md"))("%s has no placeholder left", (file) => {
  // What stands in for a figure or a paragraph while a document is being written.
  expect(read(file)).not.toContain("@@");
});

const allFiles = filesBelow();
test.each(filesBelow("src/*.ts", "test/*.ts", "testkit/*.ts", "tools/*.ts"))(
  "%s names in its comments only files that are there",
  (file) => {
    const comments = read(file).match(/^\s*(?:\/\/|\*|\/\*\*).*$/gm) ?? [];
    const named = comments.flatMap(
      (line) => line.match(/(?<![\w.*…])[\w./-]*\w\.(?:ts|md)\b/g) ?? [],
    );
    const isThere = (name: string) =>
      allFiles.some((one) => `/${one}`.endsWith(`/${name.replace(/^[./]+/, "")}`));
    expect(named.filter((name) => !isThere(name))).toEqual([]);
  },
);

test("every file that a script of package.json names is there", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const named = Object.values(scripts).flatMap(
    (script) => script.match(/[\w./-]+\.(?:json|[cm]?[jt]s)\b/g) ?? [],
  );
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((file) => !filesBelow().includes(file))).toEqual([]);
});
