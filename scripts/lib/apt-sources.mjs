// Reads the host's own apt sources, in both of their formats, and picks the entry of the main
// archive. Only reads; which mirror is used is the host's choice, so none is named here.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** All enabled binary entries: { uri, suites, components, signedBy, checkValidUntil }. */
export function readAptSources(aptDir = "/etc/apt") {
  const parts = join(aptDir, "sources.list.d");
  const names = listOf(parts).sort();
  return [
    ...parseOneLine(textOf(join(aptDir, "sources.list"))),
    ...names
      .filter((name) => name.endsWith(".list"))
      .flatMap((name) => parseOneLine(textOf(join(parts, name)))),
    ...names
      .filter((name) => name.endsWith(".sources"))
      .flatMap((name) => parseDeb822(textOf(join(parts, name)))),
  ].filter((entry) => !entry.uri.startsWith("cdrom:"));
}

/**
 * The entry for the distribution's main archive: it has the release's own suite, and not one beside
 * it.
 */
export function pickMainArchive(entries, codename) {
  const rank = (entry) => {
    if (!entry.components.includes("main")) return 0;
    if (entry.suites.includes(codename)) return 3;
    if (entry.suites.some((suite) => /^(stable|testing|unstable|sid|[a-z]+)$/.test(suite)))
      return 2;
    return 0;
  };
  return entries.reduce(
    (best, entry) => (rank(entry) > (best === undefined ? 0 : rank(best)) ? entry : best),
    undefined,
  );
}

/** `deb [signed-by=/a arch=amd64] uri suite component…` */
export function parseOneLine(text) {
  const entries = [];
  for (const line of text.split("\n")) {
    const match = /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)/.exec(line);
    if (match === null) continue;
    const options = new Map((match[1] ?? "").split(/\s+/).map((option) => option.split("=", 2)));
    entries.push({
      uri: match[2],
      suites: [match[3]],
      components: match[4].trim().split(/\s+/),
      signedBy: options.get("signed-by"),
      checkValidUntil: options.get("check-valid-until"),
    });
  }
  return entries;
}

/**
 * Stanzas of `Field: value`, parted by empty lines; a value goes on in lines that begin with a
 * space.
 */
export function parseDeb822(text) {
  const entries = [];
  const plain = text.replace(/^#.*\n/gm, "");
  for (const stanza of plain.split(/\n[ \t]*\n/)) {
    const fields = new Map();
    for (const [, name, value] of stanza.matchAll(/^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)/gm)) {
      fields.set(name.toLowerCase(), value.trim());
    }
    const words = (name) => (fields.get(name) ?? "").split(/\s+/).filter((word) => word !== "");
    if (fields.get("enabled")?.toLowerCase() === "no" || !words("types").includes("deb")) continue;
    const signedBy = fields.get("signed-by");
    for (const uri of words("uris")) {
      entries.push({
        uri,
        suites: words("suites"),
        components: words("components"),
        // A key block instead of a file name cannot be passed on by name.
        signedBy: signedBy?.startsWith("/") ? signedBy : undefined,
        checkValidUntil: fields.get("check-valid-until"),
      });
    }
  }
  return entries;
}

function textOf(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function listOf(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
