// Watches the certificate and key files of the public port, because other programs renew them. A
// valid pair is never replaced by an invalid one.

import { createPrivateKey, sign, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import type { Log } from "../../platform/base/log.ts";
import { certificateFile, isPair, keyFile } from "../../platform/base/pem.ts";
import type { CertificateFiles } from "./listener.ts";

const checkEveryMs = 1_000;
const checksBetweenTries = 60;

/** Longer RSA keys make handshakes slow. */
const rsaBitsMax = 2_048;
const signatures = 3;
/** The time of an RSA signature with 3,072 bits. It is assumed if the key cannot be read. */
const unmeasuredMs = 2.5;

/** Measures the time of a signature, because the signature is most of a handshake's work. */
export function signatureMs(keyFile: string): number {
  try {
    const key = createPrivateKey(readFileSync(keyFile));
    const digest = key.asymmetricKeyType?.startsWith("ed") ? null : "sha256";
    let ms = Number.POSITIVE_INFINITY;
    for (let count = 0; count < signatures; count++) {
      const startedMs = performance.now();
      sign(digest, Buffer.alloc(32), key);
      ms = Math.min(ms, performance.now() - startedMs);
    }
    return ms;
  } catch {
    return unmeasuredMs;
  }
}

interface CertificateWatchOptions {
  readonly files: CertificateFiles;
  readonly log: Log;
  readonly nowMs: () => number;
  readonly renew: () => void;
  readonly everyMs?: number;
}

interface Certificate {
  readonly text: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly rsaBits: number | undefined;
}

/** Watches files that are already in use. Throws if the files contain no valid pair. */
export async function watchCertificate(
  options: CertificateWatchOptions,
): Promise<CertificateWatch> {
  const state = await stateOf(options.files);
  return new CertificateWatch(options, readCertificate(options.files), state);
}

/**
 * Detects changed files. It reads them only after two checks have found the same state, because a
 * program may still be writing them. It follows symbolic links, because Kubernetes renews a secret
 * by changing a link.
 */
export class CertificateWatch {
  readonly #options: CertificateWatchOptions;
  #inUse: Certificate;
  #stateSeen: string;
  #stateSettled: string;
  #failure = "";
  #checksToNextTry = 0;
  #isClosed = false;
  #timer: NodeJS.Timeout;

  constructor(options: CertificateWatchOptions, inUse: Certificate, state: string) {
    this.#options = options;
    this.#inUse = inUse;
    this.#stateSeen = state;
    this.#stateSettled = state;
    this.#timer = this.#later();
    this.#warnIfUnfit();
  }

  get expirySeconds(): number {
    return this.#inUse.notAfterMs / 1_000;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #later(): NodeJS.Timeout {
    const { everyMs = checkEveryMs } = this.#options;
    return setTimeout(() => void this.#check(), everyMs).unref();
  }

  async #check(): Promise<void> {
    const state = await stateOf(this.#options.files);
    if (this.#isClosed) return;
    if (state !== this.#stateSeen) this.#checksToNextTry = 0;
    else if (state !== this.#stateSettled && this.#checksToNextTry-- === 0) this.#take(state);
    this.#stateSeen = state;
    this.#timer = this.#later();
  }

  #take(state: string): void {
    const { files, log } = this.#options;
    try {
      const next = readCertificate(files);
      if (next.text !== this.#inUse.text) this.#putToUse(next);
      this.#stateSettled = state;
      this.#failure = "";
    } catch (error) {
      this.#checksToNextTry = checksBetweenTries;
      const failure = `${state} ${(error as Error).message}`;
      if (failure === this.#failure) return;
      this.#failure = failure;
      log.error(
        { ...files, err: error },
        "certificate not renewed: the new files are not usable; the old certificate stays in use",
      );
    }
  }

  #putToUse(next: Certificate): void {
    const { files, log, renew } = this.#options;
    renew();
    this.#inUse = next;
    log.info({ ...files, expires: new Date(next.notAfterMs).toISOString() }, "certificate renewed");
    this.#warnIfUnfit();
  }

  #warnIfUnfit(): void {
    const { files, log } = this.#options;
    const { notBeforeMs, notAfterMs, rsaBits = 0 } = this.#inUse;
    const nowMs = this.#options.nowMs();
    const expires = new Date(notAfterMs).toISOString();
    if (nowMs > notAfterMs)
      log.warn({ ...files, expires }, "certificate expired: clients reject it");
    else if (nowMs < notBeforeMs)
      log.warn({ ...files }, "certificate not valid yet: clients reject it");
    if (rsaBits > rsaBitsMax)
      log.warn(
        { ...files, rsaBits },
        `certificate has an RSA key of ${rsaBits} bits: handshakes take several times as long as with ${rsaBitsMax}; use an ECDSA key (P-256)`,
      );
  }
}

function readCertificate({ cert, key }: CertificateFiles): Certificate {
  certificateFile(cert);
  keyFile(key);
  if (!isPair(cert, key)) throw new Error(`${key} is not the key of the certificate in ${cert}`);
  const text = readFileSync(cert, "utf8");
  const { validFromDate, validToDate, publicKey } = new X509Certificate(text);
  return {
    text,
    notBeforeMs: validFromDate.getTime(),
    notAfterMs: validToDate.getTime(),
    rsaBits: publicKey.asymmetricKeyDetails?.modulusLength,
  };
}

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
