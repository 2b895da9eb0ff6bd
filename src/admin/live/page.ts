// The live page as one text: its files put together, and the Content-Security-Policy that lets
// exactly these run, by hash. Nothing in it changes while the process runs, and nothing that a
// client sent is ever in it.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

export interface PageText {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function readPage(): PageText {
  const read = (name: string): string =>
    readFileSync(new URL(`./page/${name}`, import.meta.url), "utf8");
  const style = read("page.css");
  // Modules for those who edit them; to a browser one, so that nothing is fetched beside the page.
  const script = ["text.js", "state.js", "page.js"].map((name) => joined(read(name))).join("\n");
  // As functions: in a replacement text `$&` and the like would be read as patterns.
  const html = read("page.html")
    .replace("/* page.css */", () => style)
    .replace("/* page.js */", () => script);
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
  ];
  return {
    html,
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": policy.join("; "),
      "Cross-Origin-Opener-Policy": "same-origin",
      "X-Frame-Options": "DENY",
    },
  };
}

function joined(module: string): string {
  return module.replaceAll(/^import [^;]*;\n/gm, "").replaceAll(/^export (?=const|function)/gm, "");
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
