// The licences of included software, and an SBOM in CycloneDX.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./project.mjs";

/** Code that is compiled into the binaries of a package, which npm does not know. */
function compiledIn(folder) {
  const simdjson = readFileSync(
    join(folder, "node_modules/@nozbe/simdjson/src/simdjson.h"),
    "utf8",
  );
  const { version: uws } = manifestOf(join(folder, "node_modules/uWebSockets.js"));
  const { version: posthogJs } = manifestOf(join(folder, "posthog-js"));
  return [
    {
      name: "simdjson",
      version: /SIMDJSON_VERSION "([\d.]+)"/.exec(simdjson)[1],
      licence: "Apache-2.0",
      description: "C++, compiled into prebuilt/*/event_scan.node",
    },
    {
      name: "uWebSockets.js",
      // The package has the major version of the binaries that it contains.
      version: uws.split(".")[0],
      licence: "Apache-2.0",
      description: "C++, the binaries of the package uws-pack, with uSockets and BoringSSL",
    },
    {
      name: "posthog-js",
      version: posthogJs,
      licence: manifestOf(join(folder, "posthog-js")).license,
      description: "scripts that the gateway serves to pages, in posthog-js/",
    },
  ];
}

export function licencesText(folder) {
  const packages = packagesIn(join(folder, "node_modules")).map((place) => {
    const { name, version, license } = manifestOf(place);
    return [`${name} ${version}: ${license}`, licenceIn(place)];
  });
  const compiled = compiledIn(folder).map(({ name, version, licence, description }) => [
    `${name} ${version}: ${licence} (${description})`,
    name === "posthog-js"
      ? licenceIn(join(folder, name))
      : readFileSync(join(root, "LICENSE"), "utf8"),
  ]);
  // Equal texts, most of which are the Apache licence, are written once.
  const headsOf = new Map();
  for (const [head, text] of [...packages, ...compiled])
    headsOf.set(text, [...(headsOf.get(text) ?? []), head]);
  const line = "=".repeat(80);
  return [...headsOf].map(([text, heads]) => `${line}\n${heads.join("\n")}\n\n${text}\n`).join("");
}

/** npm's own SBOM, with the code that npm does not know. */
export async function sbomOf(folder, npm) {
  const sbom = JSON.parse(await npm(["sbom", "--sbom-format", "cyclonedx"], folder));
  const more = compiledIn(folder).map(({ name, version, licence, description }) => ({
    "bom-ref": `${name}@${version}-compiled`,
    type: "library",
    name,
    version,
    description,
    licenses: [/ /.test(licence) ? { expression: licence } : { license: { id: licence } }],
  }));
  sbom.components.push(...more);
  return `${JSON.stringify(sbom, null, 2)}\n`;
}

function manifestOf(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

function packagesIn(modules) {
  return readdirSync(modules).flatMap((name) => {
    const folder = join(modules, name);
    if (name.startsWith(".")) return [];
    if (name.startsWith("@")) return packagesIn(folder);
    const inside = join(folder, "node_modules");
    return [folder, ...(existsSync(inside) ? packagesIn(inside) : [])];
  });
}

function licenceIn(folder) {
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  return file === undefined
    ? "The package contains no licence text."
    : readFileSync(join(folder, file), "utf8").trim();
}
