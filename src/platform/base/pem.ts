// Certificates and keys that settings name: checks before anything starts whether a file can be
// read and holds what it should. The code that uses a file reads it again. Messages name the fault
// of a file and never its content.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";

/** Returns the file's name. Throws an Error whose message completes "PENSTOCK_X: …". */
export function certificateFile(file: string): string {
  const text = read(file);
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw new Error(`${file} holds no PEM certificate`);
  if (!succeeds(() => new X509Certificate(text)))
    throw new Error(`${file} holds a certificate that cannot be read`);
  return file;
}

/** Does what certificateFile does, for a private key without a passphrase. */
export function keyFile(file: string): string {
  const text = read(file);
  if (!/-----BEGIN ([A-Z]+ )*PRIVATE KEY-----/.test(text))
    throw new Error(`${file} holds no PEM private key`);
  if (/-----BEGIN ENCRYPTED|Proc-Type: 4,ENCRYPTED/.test(text)) {
    throw new Error(
      `${file} is encrypted: a key without a passphrase is needed, readable by its owner only`,
    );
  }
  if (!succeeds(() => createPrivateKey(text)))
    throw new Error(`${file} holds a key that cannot be read`);
  return file;
}

/**
 * Whether the key belongs to the first certificate in the file. Throws when one of the two cannot
 * be read, or is not what it should be.
 */
export function isPair(certificate: string, key: string): boolean {
  return new X509Certificate(read(certificate)).checkPrivateKey(createPrivateKey(read(key)));
}

/** Returns the file's name. The file may hold any text, but has to be readable. */
export function readableFile(file: string): string {
  read(file);
  return file;
}

function read(file: string): string {
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
