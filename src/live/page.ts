// The files of the live page, and the Content-Security-Policy that only allows these files to run.

import { readFileSync } from "node:fs";

interface PageFile {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

const headersOfPage = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": policy,
  "Cross-Origin-Opener-Policy": "same-origin",
  "X-Frame-Options": "DENY",
};

/** Returns the files by path; the page itself is at `/`. */
export function readPage(): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>([
    ["/", { body: read("page.html"), headers: headersOfPage }],
  ]);
  for (const name of ["page.css", "page.js", "state.js", "effects.js", "json-text.js", "text.js"]) {
    const type = name.endsWith(".css") ? "text/css" : "text/javascript";
    const headers = { "Content-Type": `${type}; charset=utf-8` };
    files.set(`/page/${name}`, { body: read(name), headers });
  }
  return files;
}

function read(name: string): string {
  return readFileSync(new URL(`./page/${name}`, import.meta.url), "utf8");
}
