// Checks certificate and key files. Each check returns the file name, or throws an Error. The
// message completes "PENSTOCK_X: …" and never contains the content of the file.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export function certificateFile(file: string): string {
  const text = readText(file);
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw new Error(`${file} contains no PEM certificate`);
  if (!succeeds(() => new X509Certificate(text)))
    throw new Error(`${file} contains an invalid certificate`);
  return file;
}

export function keyFile(file: string): string {
  const text = readText(file);
  if (!/-----BEGIN ([A-Z]+ )*PRIVATE KEY-----/.test(text))
    throw new Error(`${file} contains no PEM private key`);
  if (/-----BEGIN ENCRYPTED|Proc-Type: 4,ENCRYPTED/.test(text))
    throw new Error(
      `${file} is encrypted: use a key without a passphrase, readable only by its owner`,
    );
  if (!succeeds(() => createPrivateKey(text))) throw new Error(`${file} contains an invalid key`);
  return file;
}

export function isPair(certificate: string, key: string): boolean {
  return new X509Certificate(readText(certificate)).checkPrivateKey(
    createPrivateKey(readText(key)),
  );
}

export function readableFile(file: string): string {
  readText(file);
  return file;
}

export function readText(file: string): string {
  if (file === "") throw new Error("must not be empty");
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new Error(`cannot read ${file}: ${(error as NodeJS.ErrnoException).code ?? "unknown"}`);
  }
}

function succeeds(action: () => void): boolean {
  try {
    action();
    return true;
  } catch {
    return false;
  }
}

export function posthogJsFolder(folder: string): string {
  if (folder === "") throw new Error("must not be empty");
  if (folder !== "off" && !isPosthogJs(folder))
    throw new Error(
      `must be the folder of the npm package posthog-js, or off: ${folder} contains no dist/array.js`,
    );
  return folder;
}

export function isPosthogJs(folder: string): boolean {
  return existsSync(join(folder, "dist", "array.js"));
}
