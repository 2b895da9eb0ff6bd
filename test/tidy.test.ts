// Rules for the whole code base, one test each. A test lists every offender.

import { execFileSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { generatedPages } from "../scripts/docs/pages.ts";
import { metricNames, metricTable } from "../src/gateway/admin/metrics/metric-table.ts";
import { errorTable, itemErrorCodes } from "../src/platform/base/errors.ts";
import { variableOf } from "../src/platform/base/setting-name.ts";
import { dropTable, warningTable } from "../src/platform/base/warnings.ts";
import { settings } from "../src/platform/settings/config.ts";

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
    .filter((file) => file !== "" && statSync(path.join(root, file)).isFile());
}

function read(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}

const sources = filesBelow("src").filter((file) => file.endsWith(".ts"));

// The folders of src from which a folder may import, besides itself. The longest matching name
// applies.
const base = "platform/base";
const everythingButApp = ["commands", "gateway", "live", "platform", "readers", "records", "rules"];
// The contracts between the gateway's folders: types that their owner defines in these files.
const contracts = [
  "gateway/http/port.ts",
  "gateway/intake/admission.ts",
  "gateway/intake/quarantine-port.ts",
  "gateway/projects/project.ts",
  "gateway/publish/port.ts",
  "gateway/streams/project-shares.ts",
  "records/frame-sink.ts",
];
const ofHttp = [base, ...contracts, "gateway/body", "gateway/http", "gateway/upstream", "rules"];
const ofReaders = [base, "records", "readers/stream"].concat(
  ["metrics", "nats", "postgres"].map((folder) => `platform/${folder}`),
);
const mayImport: Record<string, string[]> = {
  "platform/base": [],
  "platform/metrics": [base],
  "platform/nats": [base],
  "platform/otel": [base, "platform/metrics"],
  "platform/postgres": [base],
  "platform/settings": [base, "platform/nats"],
  "platform/embedded": [base],
  records: [base],
  rules: [base, "records"],
  "gateway/http": ofHttp,
  "gateway/body": ofHttp,
  "gateway/upstream": ofHttp,
  "gateway/intake": [base, ...contracts, "records", "rules"],
  "gateway/publish": [base, ...contracts, "platform/nats"],
  "gateway/streams": [base, ...contracts, "platform/nats"],
  "gateway/projects": [base, ...contracts, "platform/metrics", "platform/nats", "rules"],
  "gateway/quarantine": [base, ...contracts, "platform/nats", "gateway/streams", "records"],
  // Workers need the settings type, and the table of metrics that a supervisor adds up.
  "gateway/workers": [base, "gateway/admin/metrics/metric-table.ts"].concat(
    ["metrics", "settings"].map((folder) => `platform/${folder}`),
  ),
  "gateway/admin": everythingButApp,
  "readers/stream": [base, "platform/nats"],
  "readers/effects": ofReaders,
  "readers/sinks": ofReaders,
  // A separate package: all its files are published.
  "readers/consumer": [base, "platform/nats"].concat(
    ["frame.ts", "resume.ts", "stored-stream.ts", "stream-erasures.ts"].map(
      (file) => `readers/stream/${file}`,
    ),
  ),
  live: everythingButApp,
  commands: everythingButApp,
  app: everythingButApp,
};

function folderOf(file: string): string | undefined {
  return Object.keys(mayImport).find((folder) => file.startsWith(`src/${folder}/`));
}

test("a file of src imports only from the allowed folders", () => {
  const offenders = sources.flatMap((file) => {
    const folder = folderOf(file);
    if (folder === undefined) return file === "src/main.ts" ? [] : [`${file} has no import rule`];
    const allowed = [folder, ...(mayImport[folder] ?? [])];
    return importsOf(file)
      .filter(
        (imported) =>
          !allowed.some((place) => imported === place || imported.startsWith(`${place}/`)),
      )
      .map((imported) => `${file} imports ${imported}`);
  });
  expect(offenders).toEqual([]);
});

test("no file takes part in an import cycle", () => {
  const files = [...sources, ...filesBelow("bench/*.ts", "scripts/*.ts", "test/*.ts")];
  const cycles: string[] = [];
  const state = new Map<string, "open" | "done">();
  const visit = (file: string, via: readonly string[]): void => {
    if (state.get(file) === "done") return;
    if (state.get(file) === "open") {
      cycles.push([...via.slice(via.indexOf(file)), file].join(" -> "));
      return;
    }
    state.set(file, "open");
    for (const imported of importsOf(file)) {
      const next = path.posix.join("src", imported);
      if (files.includes(next)) visit(next, [...via, file]);
    }
    state.set(file, "done");
  };
  for (const file of files) visit(file, []);
  expect(cycles).toEqual([]);
});

test("a port.ts or project.ts of the gateway has no runtime code", () => {
  const ports = sources.filter((file) => /\/gateway\/.*\/(port|project)\.ts$/.test(file));
  const runtimeCode = /^export (const|function|class|let)|^import (?!type)/m;
  expect(ports.length).toBe(3);
  expect(ports.filter((file) => runtimeCode.test(read(file)))).toEqual([]);
});

function importsOf(file: string): string[] {
  const named = read(file).matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g);
  return [...named].map((match) =>
    path.posix.relative("src", path.posix.join(path.posix.dirname(file), match[1] ?? "")),
  );
}

test("no source has a default export or `any`, and only main.ts uses process", () => {
  const codeOf = (text: string) =>
    text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, "").replaceAll(/`[^`]*`|"[^"]*"/g, "");
  const rules: readonly (readonly [string, (file: string, text: string) => boolean])[] = [
    ["default export", (_, text) => /^export default/m.test(text)],
    ["any", (_, text) => /\bas any\b|: any\b|@ts-ignore|@ts-expect-error/.test(text)],
    ["process", (file, text) => file !== "src/main.ts" && /(?<![.\w])process\./.test(codeOf(text))],
  ];
  const offenders = sources.flatMap((file) => {
    const text = read(file);
    return rules.filter(([, breaks]) => breaks(file, text)).map(([rule]) => `${file}: ${rule}`);
  });
  expect(offenders).toEqual([]);
});

test("generated pages are up to date (else: npm run docs)", () => {
  expect(
    [...generatedPages()].filter(([file, text]) => read(file) !== text).map(([file]) => file),
  ).toEqual([]);
});

test("the README has at most 150 lines", () => {
  expect(read("README.md").split("\n").length).toBeLessThanOrEqual(150);
});

test("errors.md and docs/openapi.yaml list every error with its cause and remedy", () => {
  const page = read("docs/reference/errors.md");
  const openapi = read("docs/openapi.yaml");
  const missing = Object.entries(errorTable).flatMap(([code, row]) => {
    const section = plainText(sectionOf(page, code));
    const isComplete =
      new RegExp(`\\| ${row.status} \\| \\[\`${code}\`\\]\\(#${code}\\) \\|`).test(page) &&
      section.includes(plainText(row.when).slice(1)) &&
      section.includes(plainText(row.remedy)) &&
      new RegExp(`\\b${code}\\b`).test(openapi);
    return isComplete ? [] : [code];
  });
  expect(missing).toEqual([]);
});

test("the documents list every warning with its cause and effect", () => {
  const errors = read("docs/reference/errors.md");
  const fields = read("docs/reference/event-fields.md");
  const missing = Object.entries({ ...dropTable, ...warningTable }).flatMap(([code, row]) =>
    plainText(sectionOf(errors, code)).includes(plainText(row.when).slice(1)) &&
    new RegExp(`^\\| .*\\|.*warning.*\`${code}\``, "m").test(fields)
      ? []
      : [code],
  );
  expect(missing).toEqual([]);
});

test("event-fields.md lists every error of an event", () => {
  const page = read("docs/reference/event-fields.md");
  expect(
    itemErrorCodes.filter(
      (code) => !new RegExp(`^\\| .*\\|.*(?:error|drop),? .*\`${code}\``, "m").test(page),
    ),
  ).toEqual([]);
});

test("settings.md lists every setting with its default", () => {
  const lines = read("docs/reference/settings.md").split("\n");
  const missing = Object.entries(settings).flatMap(([name, row]) => {
    const fallback = row.fallback === undefined ? "unset" : `\`${row.fallback}\``;
    const line = lines.find((one) => one.startsWith(`| \`${variableOf(name)}\` | ${fallback}`));
    return plainText(line ?? "").includes(plainText(row.why).slice(1)) ? [] : [name];
  });
  expect(missing).toEqual([]);
});

test("metrics.md lists every metric with its type and help", () => {
  const lines = read("docs/reference/metrics.md").split("\n");
  const missing = metricNames.filter((name) => {
    const line = lines.find((one) => one.startsWith(`| \`${name}\` | ${metricTable[name].type} |`));
    return !plainText(line ?? "").includes(plainText(metricTable[name].help));
  });
  expect(missing).toEqual([]);
});

function sectionOf(page: string, heading: string): string {
  return page.split(/^#+ /m).find((one) => one.startsWith(`${heading}\n`)) ?? "";
}

function plainText(markdown: string): string {
  return markdown
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[`\\]/g, "")
    .replaceAll("&lt;", "<");
}

test("no source or script imports from test/", () => {
  const files = filesBelow("scripts/**/*.ts", "scripts/**/*.mjs", "src/**/*.ts");
  const offenders = files.filter((file) =>
    [...read(file).matchAll(/(?:from|import\()\s*"(\.[^"]+)"/g)].some((match) =>
      path.posix.join(path.posix.dirname(file), match[1] ?? "").startsWith("test/"),
    ),
  );
  expect(offenders).toEqual([]);
});

test("every export is used by another file", () => {
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

test("only src/gateway/http/uws.ts imports uWebSockets.js", () => {
  const importing = sources.filter((file) =>
    /(?:from|import\() ?"uWebSockets\.js"/.test(read(file)),
  );
  expect(importing).toEqual(["src/gateway/http/uws.ts"]);
});

test("OpenTelemetry's packages are loaded only if the export is on", () => {
  const importing = sources.filter((file) => /from "@opentelemetry\//.test(read(file)));
  expect(importing.length).toBeGreaterThan(0);
  expect(importing.filter((file) => !file.startsWith("src/platform/otel/"))).toEqual([]);
  const loading = sources.filter((file) =>
    /^import (?!type)[^;]*platform\/otel\//m.test(read(file)),
  );
  expect(loading).toEqual([]);
});

test("no file names a package registry, and every dependency is pinned", () => {
  const hosts = new RegExp(["registry[.]npmjs", "deb[.]debian", "proxy[.]golang"].join("|"));
  for (const file of filesBelow()) expect(hosts.test(read(file)), file).toBe(false);
  const manifests = ["package.json", "test/package.json"].map(
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

test("no document contains a placeholder (@@)", () => {
  // "@@" marks a missing figure or paragraph.
  expect(filesBelow("*.md").filter((file) => read(file).includes("@@"))).toEqual([]);
});

test("comments name only files that exist", () => {
  const allFiles = filesBelow().map((file) => `/${file}`);
  const exists = (name: string) =>
    allFiles.some((one) => one.endsWith(`/${name.replace(/^[./]+/, "")}`));
  const offenders = filesBelow("src/*.ts", "test/*.ts", "bench/*.ts", "scripts/*.ts").flatMap(
    (file) => {
      const comments = read(file).match(/^\s*(?:\/\/|\*|\/\*\*).*$/gm) ?? [];
      return comments
        .flatMap((line) => line.match(/(?<![\w.*…])[\w./-]*\w\.(?:ts|md)\b/g) ?? [])
        .filter((name) => !exists(name))
        .map((name) => `${file}: ${name}`);
    },
  );
  expect(offenders).toEqual([]);
});

test("every file named by a script of package.json exists", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const named = Object.values(scripts).flatMap(
    (script) => script.match(/[\w./-]+\.(?:json|[cm]?[jt]s)\b/g) ?? [],
  );
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((file) => !filesBelow().includes(file))).toEqual([]);
});
