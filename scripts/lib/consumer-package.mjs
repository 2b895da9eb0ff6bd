// The npm package for programs that read events: the files of dist/ that `penstock/consumer`
// imports. Needs a current dist/.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { cacheDir, hostEnvironment, root, SetupError } from "./project.mjs";

/** Packs the files into the folder. Returns the path of penstock-<version>.tgz. */
export async function packConsumer(runner, folder) {
  const source = join(cacheDir, `consumer-package-${process.pid}`);
  try {
    const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const { files, packages } = reachedFrom(Object.values(manifest.exports["./consumer"]));
    for (const file of files) {
      mkdirSync(dirname(join(source, file)), { recursive: true });
      copyFileSync(join(root, file), join(source, file));
    }
    copyFileSync(join(root, "LICENSE"), join(source, "LICENSE"));
    const own = consumerManifest(manifest, packages);
    writeFileSync(join(source, "package.json"), `${JSON.stringify(own, null, 2)}\n`);
    mkdirSync(folder, { recursive: true });
    const args = ["pack", source, "--pack-destination", folder, "--loglevel=error"];
    const { ok, said } = await runner.run("npm", args, { env: hostEnvironment() });
    if (!ok) throw new SetupError(`${said}npm pack failed: see above`);
    return join(folder, `${own.name}-${own.version}.tgz`);
  } finally {
    rmSync(source, { recursive: true, force: true });
  }
}

function consumerManifest({ name, version, license, exports, dependencies }, packages) {
  return {
    ...{ name, version, license },
    description: "Reads the events that Penstock has stored in NATS JetStream.",
    type: "module",
    engines: { node: ">=20" },
    exports,
    dependencies: Object.fromEntries(packages.map((one) => [one, dependencies[one]])),
  };
}

/** Returns these files with all files that they import, and the packages. */
function reachedFrom(entries) {
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
  for (const entry of entries) visit(relative(root, join(root, entry)));
  return { files: [...files], packages: [...packages].sort() };
}

/** Returns the path of an imported file, and for a .ts file the path of its declaration. */
function fileOf(importing, name) {
  return join(dirname(importing), name).replace(/(?<!\.d)\.ts$/, ".d.ts");
}

function packageOf(name) {
  return name
    .split("/")
    .slice(0, name.startsWith("@") ? 2 : 1)
    .join("/");
}
