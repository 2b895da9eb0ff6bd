// The public port's certificate as files that others renew: looks at them every second and says
// when a new pair is whole. Does not serve it, and never gives up one that works for one that does
// not.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import type { Log } from "../base/log.ts";
import { certificateFile, isPair, keyFile } from "../base/pem.ts";
import type { CertificateFiles } from "./listener.ts";

const lookEveryMs = 1_000;
/**
 * Files that were not fit are tried again after so many looks, changed or not: what was in the way
 * may have passed.
 */
const looksBetweenTries = 60;

export interface CertificateWatchOptions {
  readonly files: CertificateFiles;
  readonly log: Log;
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** Puts what the files hold into use; throws when that fails. */
  readonly renew: () => void;
  readonly everyMs?: number;
}

export interface CertificateWatch {
  /** When the certificate in use ends, in seconds since the epoch. */
  readonly expirySeconds: number;
  close(): void;
}

interface Certificate {
  /** The file as it is, with the certificates that vouch for the first. */
  readonly text: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/**
 * For a pair that is in use from now on; throws when the files do not hold one. They are read again
 * when they have changed and then were the same at two looks, so that a pair is not taken while it
 * is being written. Links are followed: Kubernetes renews secrets by pointing a link elsewhere.
 */
export async function watchCertificate(
  options: CertificateWatchOptions,
): Promise<CertificateWatch> {
  const { files, log, nowMs, renew, everyMs = lookEveryMs } = options;
  let seen = await stateOf(files);
  let settled = seen;
  let failure = "";
  let looksToNextTry = 0;
  let current = readCertificate(files);
  let closed = false;
  let timer = later();
  warnIfInvalidNow(current);

  function later(): NodeJS.Timeout {
    return setTimeout(() => void look(), everyMs).unref();
  }

  async function look(): Promise<void> {
    const state = await stateOf(files);
    if (closed) return;
    if (state !== seen) looksToNextTry = 0;
    else if (state !== settled && looksToNextTry-- === 0) take(state);
    seen = state;
    timer = later();
  }

  function take(state: string): void {
    try {
      const next = readCertificate(files);
      if (next.text !== current.text) putToUse(next);
      settled = state;
      failure = "";
    } catch (error) {
      looksToNextTry = looksBetweenTries;
      const found = `${state} ${(error as Error).message}`;
      if (found === failure) return;
      failure = found;
      log.error(
        { ...files, err: error },
        "renew the certificate: the files are not fit, the old one stays in use",
      );
    }
  }

  function putToUse(next: Certificate): void {
    renew();
    current = next;
    log.info(
      { ...files, expires: new Date(next.notAfterMs).toISOString() },
      "the certificate was renewed",
    );
    warnIfInvalidNow(next);
  }

  function warnIfInvalidNow({ notBeforeMs, notAfterMs }: Certificate): void {
    const now = nowMs();
    const expires = new Date(notAfterMs).toISOString();
    if (now > notAfterMs)
      log.warn({ ...files, expires }, "the certificate has expired: clients will refuse it");
    else if (now < notBeforeMs)
      log.warn({ ...files }, "the certificate is not valid yet: clients will refuse it");
  }

  return {
    get expirySeconds() {
      return current.notAfterMs / 1_000;
    },
    close: () => {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/** Throws an Error that names the file and what is wrong with it. */
function readCertificate({ cert, key }: CertificateFiles): Certificate {
  certificateFile(cert);
  keyFile(key);
  if (!isPair(cert, key)) throw new Error(`${key} is not the key of the certificate in ${cert}`);
  const text = readFileSync(cert, "utf8");
  const { validFromDate, validToDate } = new X509Certificate(text);
  return { text, notBeforeMs: validFromDate.getTime(), notAfterMs: validToDate.getTime() };
}

/** A text that changes whenever a file is written, replaced or gone. */
async function stateOf({ cert, key }: CertificateFiles): Promise<string> {
  return (await Promise.all([cert, key].map(stateOfFile))).join(" ");
}

async function stateOfFile(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(":");
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}
