// The files that settings name and set-up builds: certificates and credentials with the day they end, addons that load.

import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { checkOf, type Finding } from "./finding.ts";

const dayMs = 86_400_000;
const soonMs = 14 * dayMs;

export interface NamedFile {
  /** `PENSTOCK_TLS_CERT`. */
  readonly setting: string;
  readonly file: string;
}

/** Of a certificate file, with those behind the first in it: the settings have been read, so it is one, and its key fits. */
export function checkCertificate({ setting, file }: NamedFile, nowMs: number): Finding {
  const check = checkOf("certificates");
  const ends: number[] = [];
  try {
    for (const [pem] of readFileSync(file, "utf8").matchAll(
      /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
    )) {
      const { validFromDate, validToDate } = new X509Certificate(pem);
      if (nowMs < validFromDate.getTime()) {
        const found = `${setting} is valid from ${shownDay(validFromDate.getTime())} on: nobody takes it before`;
        return check.fail(found, "look at the clock, or wait, or have another made");
      }
      ends.push(validToDate.getTime());
    }
  } catch (error) {
    return check.fail(`${setting} cannot be read: ${(error as Error).message}`, `put a PEM certificate into ${file}`);
  }
  return expiry(setting, { file, endsMs: Math.min(...ends), nowMs });
}

/** Of a NATS credentials file. One without a day in it does not end. */
export function checkCredentials({ setting, file }: NamedFile, nowMs: number): Finding {
  const check = checkOf("certificates");
  try {
    const jwt = /-----BEGIN NATS USER JWT-----\s*(\S+)\s*-----?/.exec(readFileSync(file, "utf8"))?.[1] ?? "";
    const claims = JSON.parse(Buffer.from(jwt.split(".")[1] ?? "", "base64url").toString("utf8")) as { exp?: number };
    if (claims.exp === undefined || claims.exp === 0) return check.ok(`${setting} does not end`);
    return expiry(setting, { file, endsMs: claims.exp * 1_000, nowMs });
  } catch {
    return check.fail(`${setting}: ${file} holds no NATS credentials`, "write it with `nsc generate creds`");
  }
}

function expiry(setting: string, { file, endsMs, nowMs }: { file: string; endsMs: number; nowMs: number }): Finding {
  const check = checkOf("certificates");
  const mend = `renew ${file}: a new one is taken without a restart`;
  if (endsMs <= nowMs) return check.fail(`${setting} ended ${shownDay(endsMs)}`, mend);
  const found = `${setting} ends ${shownDay(endsMs)}`;
  if (endsMs - nowMs > soonMs) return check.ok(found);
  return check.warn(`${found}, in ${((endsMs - nowMs) / dayMs).toFixed(1)} days`, mend);
}

function shownDay(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

export interface Part {
  readonly name: string;
  /** Throws when it cannot be loaded. */
  readonly load: () => unknown;
  /** What is so without it. */
  readonly without: string;
  /** The gateway does not start without it. */
  readonly isNeeded: boolean;
}

export function checkParts(parts: readonly Part[]): Finding[] {
  const check = checkOf("addons");
  const findings = parts.flatMap(({ name, load, without, isNeeded }) => {
    try {
      load();
      return [];
    } catch {
      const found = `${name} is not built, or not for this Node: ${without}`;
      return [isNeeded ? check.fail(found, "npm run setup") : check.warn(found, "npm run setup")];
    }
  });
  return findings.length > 0 ? findings : [check.ok(`${parts.map(({ name }) => name).join(", ")} load`)];
}
