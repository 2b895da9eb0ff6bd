// Certificates and keys that settings name: whether a file can be read and holds what it should,
// told before anything starts. Reads and judges; those who use the files read them again. Messages
// name the file's fault and never its content.

import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";

/** Answers the file's name. Throws an Error whose message completes "PENSTOCK_X: …". */
export function certificateFile(file: string): string {
  const text = read(file);
  if (!text.includes("-----BEGIN CERTIFICATE-----"))
    throw new Error(`${file} holds no PEM certificate`);
  if (!succeeds(() => new X509Certificate(text)))
    throw new Error(`${file} holds a certificate that cannot be read`);
  return file;
}

/** As certificateFile, for a private key without a passphrase. */
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
 * True when the key is that of the certificate, the first in its file. Throws when one of them
 * cannot be read, or is none.
 */
export function isPair(certificate: string, key: string): boolean {
  return new X509Certificate(read(certificate)).checkPrivateKey(createPrivateKey(read(key)));
}

/** A file of any text, which has to be there. */
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
