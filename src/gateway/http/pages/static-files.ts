// Serves the scripts of the npm package posthog-js. All scripts are read at start, so a request can
// never read any other file.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzip } from "node:zlib";
import { isPosthogJs } from "../../../platform/base/pem.ts";
import { type FixedAnswer, nosniff, SCRIPT_TYPE } from "../reply.ts";

interface FileRequest {
  readonly ifNoneMatch: string;
  readonly acceptEncoding: string;
}

export interface StaticFiles {
  readonly folder: string;
  readonly version: string;
  readonly names: readonly string[];
  answer(name: string, request: FileRequest): FixedAnswer | undefined;
}

interface Form {
  readonly whole: FixedAnswer;
  readonly notModified: FixedAnswer;
  readonly etag: string;
}

const CACHED = "public, max-age=3600";
const forBundlers = /^(main|module)\b/;
const isModule = (text: Buffer): boolean =>
  /(^|[;}\s])export\s?[{*d]/.test(text.toString("latin1", Math.max(0, text.length - 4_096)));

/**
 * If `folder` is undefined, uses the nearest installed package. Returns undefined if there is no
 * package, or if `folder` is `off`.
 */
export function readStaticFiles(folder: string | undefined): StaticFiles | undefined {
  const found = folder ?? nearestPackage();
  if (found === undefined || found === "off") return undefined;
  const dist = join(found, "dist");
  const scripts = new Map<string, Script>();
  for (const name of readdirSync(dist)) {
    if (!/^[\w.-]+\.js$/.test(name) || forBundlers.test(name)) continue;
    const text = readFileSync(join(dist, name));
    if (!isModule(text)) scripts.set(name, new Script(text));
  }
  return {
    folder: found,
    version: versionIn(found),
    names: [...scripts.keys()],
    answer: (name, request) => scripts.get(name)?.answer(request),
  };
}

class Script {
  readonly #text: Buffer;
  #hash = "";
  #plain: Form | undefined;
  #zipped: Form | undefined;

  constructor(text: Buffer) {
    this.#text = text;
  }

  answer({ ifNoneMatch, acceptEncoding }: FileRequest): FixedAnswer {
    if (this.#plain === undefined) {
      this.#hash = createHash("sha256").update(this.#text).digest("base64url").slice(0, 22);
      this.#plain = formOf(this.#text, `"${this.#hash}"`, []);
      gzip(this.#text, { level: 9 }, (error, zipped) => {
        if (error === null)
          this.#zipped = formOf(zipped, `"${this.#hash}-gzip"`, [["Content-Encoding", "gzip"]]);
      });
    }
    const { whole, notModified, etag } =
      (takesGzip(acceptEncoding) ? this.#zipped : undefined) ?? this.#plain;
    return isNamedIn(ifNoneMatch, etag) ? notModified : whole;
  }
}

function formOf(body: Buffer, etag: string, own: readonly (readonly [string, string])[]): Form {
  const cacheHeaders = [
    ["ETag", etag],
    ["Cache-Control", CACHED],
    ["Vary", "Accept-Encoding"],
    ["Cross-Origin-Resource-Policy", "cross-origin"],
  ] as const;
  const type = ["Content-Type", SCRIPT_TYPE] as const;
  const headers = [type, nosniff, ...own, ...cacheHeaders];
  return {
    etag,
    whole: { status: 200, headers, body },
    notModified: { status: 304, headers: cacheHeaders, body: "" },
  };
}

/** Compares ETags. The prefix `W/` is ignored, because a proxy that compresses answers adds it. */
function isNamedIn(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === "") return false;
  const tags = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}

function takesGzip(acceptEncoding: string): boolean {
  return acceptEncoding
    .split(",")
    .some((entry) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$)|$)/i.test(entry));
}

function nearestPackage(): string | undefined {
  const candidates = [resolve("node_modules", "posthog-js")];
  let folder = fileURLToPath(new URL(".", import.meta.url));
  for (let above = dirname(folder); above !== folder; above = dirname(folder)) {
    folder = above;
    candidates.push(join(folder, "node_modules", "posthog-js"));
  }
  // An installed version has precedence over the copy in the npm package. The copy is outside of
  // node_modules, because npm would remove it there.
  candidates.push(fileURLToPath(new URL("../../../../posthog-js", import.meta.url)));
  return candidates.find(isPosthogJs);
}

function versionIn(folder: string): string {
  try {
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
      version?: unknown;
    };
    return typeof version === "string" ? version : "unknown";
  } catch {
    return "unknown";
  }
}
