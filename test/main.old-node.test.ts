import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";

const mainFile = path.resolve(import.meta.dirname, "../src/main.ts");

function runOn(version: string) {
  const disguise = `
    import { registerHooks } from "node:module";
    const versions = { ...process.versions, node: ${JSON.stringify(version)} };
    Object.defineProperty(process, "versions", { value: versions });
    Object.defineProperty(process, "version", { value: "v" + versions.node });
    registerHooks({
      load(url, context, next) {
        if (url.startsWith("file:") && !url.endsWith("/main.ts")) throw new Error("loaded " + url);
        return next(url, context);
      },
    });`;
  const preload = `data:text/javascript,${encodeURIComponent(disguise)}`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", "--import", preload, mainFile, "--version"],
    { encoding: "utf8" },
  );
  return { status, stdout, stderr };
}

test.each(["18.20.8", "20.20.2", "22.14.0"])("the program does not start on Node %s", (version) => {
  expect(runOn(version)).toEqual({
    status: 1,
    stdout: "",
    stderr: `penstock: needs Node 22.19, this is v${version}: in a clone start it with npm or ./penstock; for the npm package run \`npm rebuild penstock\`, which fetches one\n`,
  });
});

test.each(["22.19.0", "24.0.0"])("the program starts on Node %s", (version) => {
  const { status, stderr } = runOn(version);
  expect(status).toBe(1);
  expect(stderr).toMatch(/loaded file:.*commander/);
});
