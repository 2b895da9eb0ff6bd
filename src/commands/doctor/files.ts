import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { dayMs } from "../../platform/base/day.ts";
import { hostPlatform, NativeModuleError } from "../../platform/base/native-module.ts";
import { checkOf, type Finding } from "./finding.ts";

const soonMs = 14 * dayMs;
const certificates = checkOf("certificates");

export interface NamedFile {
  readonly setting: string;
  readonly file: string;
}

export function checkChain(named: NamedFile, nowMs: number): Finding {
  const { setting, file } = named;
  const times = readTimes(named);
  if (!Array.isArray(times)) return times;
  const fromMs = Math.max(...times.map((time) => time.fromMs));
  if (nowMs < fromMs) return notYet(setting, fromMs);
  return expiry(setting, { file, endsMs: Math.min(...times.map((time) => time.endsMs)), nowMs });
}

/** If one certificate authority expires, the other authorities stay valid. */
export function checkAuthorities(named: NamedFile, nowMs: number): Finding {
  const { setting, file } = named;
  const times = readTimes(named);
  if (!Array.isArray(times)) return times;
  const ended = times.filter(({ endsMs }) => endsMs <= nowMs).length;
  const begun = times.filter(({ fromMs, endsMs }) => fromMs <= nowMs && nowMs < endsMs);
  if (ended < times.length && begun.length === 0) {
    const later = times.filter(({ endsMs }) => endsMs > nowMs);
    return notYet(setting, Math.min(...later.map(({ fromMs }) => fromMs)));
  }
  const all = expiry(setting, {
    file,
    endsMs: Math.max(...times.map(({ endsMs }) => endsMs)),
    nowMs,
  });
  if (all.level !== "ok" || ended === 0) return all;
  const found = `${ended} of the ${times.length} CA certificates in ${setting} have expired, so servers with certificates signed by them are rejected; the last valid CA certificate ${all.found.slice(setting.length + 1)}`;
  return certificates.warn(
    found,
    `remove the expired certificates from ${file}: the file is reloaded without a restart`,
  );
}

interface Times {
  readonly fromMs: number;
  readonly endsMs: number;
}

function readTimes({ setting, file }: NamedFile): Times[] | Finding {
  try {
    const pems = readFileSync(file, "utf8").matchAll(
      /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
    );
    const times = [...pems].map(([pem]) => {
      const { validFromDate, validToDate } = new X509Certificate(pem);
      return { fromMs: validFromDate.getTime(), endsMs: validToDate.getTime() };
    });
    if (times.length === 0) throw new Error("it contains no certificate");
    return times;
  } catch (error) {
    const fix = `write a PEM certificate to ${file}`;
    return certificates.fail(`${setting} cannot be read: ${(error as Error).message}`, fix);
  }
}

function notYet(setting: string, fromMs: number): Finding {
  const found = `${setting} is not valid before ${shownDay(fromMs)}`;
  return certificates.fail(found, "check the clock, wait, or get another certificate");
}

/** Checks if the credentials have expired. They never expire if `exp` is missing or 0. */
export function checkCredentials({ setting, file }: NamedFile, nowMs: number): Finding {
  try {
    const jwt =
      /-----BEGIN NATS USER JWT-----\s*(\S+)\s*-----?/.exec(readFileSync(file, "utf8"))?.[1] ?? "";
    const claims = JSON.parse(
      Buffer.from(jwt.split(".")[1] ?? "", "base64url").toString("utf8"),
    ) as { exp?: number };
    if (claims.exp === undefined || claims.exp === 0)
      return certificates.ok(`${setting} does not expire`);
    return expiry(setting, { file, endsMs: claims.exp * 1_000, nowMs });
  } catch {
    return certificates.fail(
      `${setting}: ${file} contains no NATS credentials`,
      "create it with `nsc generate creds`",
    );
  }
}

function expiry(
  setting: string,
  { file, endsMs, nowMs }: { file: string; endsMs: number; nowMs: number },
): Finding {
  const fix = `renew ${file}: the new file is loaded without a restart`;
  if (endsMs <= nowMs) return certificates.fail(`${setting} expired ${shownDay(endsMs)}`, fix);
  const found = `${setting} expires ${shownDay(endsMs)}`;
  if (endsMs - nowMs > soonMs) return certificates.ok(found);
  return certificates.warn(`${found}, in ${((endsMs - nowMs) / dayMs).toFixed(1)} days`, fix);
}

function shownDay(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

interface Part {
  readonly name: string;
  readonly load: () => unknown;
  readonly without: string;
}

export function checkParts(parts: readonly Part[]): Finding[] {
  const check = checkOf("addons");
  const findings = parts.flatMap(({ name, load, without }) => {
    try {
      load();
      return [];
    } catch (error) {
      const others = error instanceof NativeModuleError ? error.otherPlatforms : undefined;
      const why =
        others === undefined
          ? "is not built, or not for this Node"
          : `is for ${others}, and this host is ${hostPlatform}`;
      const fix =
        others === undefined ? "npm run setup" : `install the package for ${hostPlatform}`;
      return [check.fail(`${name} ${why}: ${without}`, fix)];
    }
  });
  return findings.length > 0
    ? findings
    : [check.ok(`${parts.map(({ name }) => name).join(", ")} load`)];
}

interface Scripts {
  readonly version: string;
  readonly folder: string;
  readonly names: readonly string[];
}

/**
 * Checks the scripts that the HTML snippet loads. If they are missing, a page sends no events and
 * shows no error. If `setting` is `off`, no scripts are served on purpose.
 */
export function checkScripts(
  read: () => Scripts | undefined,
  setting: string | undefined,
): Finding {
  const check = checkOf("scripts");
  const fix =
    "PENSTOCK_POSTHOG_JS=<folder of the npm package posthog-js>, or off if no page loads posthog-js from this gateway";
  try {
    const scripts = read();
    if (scripts !== undefined)
      return check.ok(`posthog-js ${scripts.version} from ${scripts.folder}`);
    if (setting === "off") return check.ok("none: PENSTOCK_POSTHOG_JS is off");
    return check.warn(
      "no posthog-js: pages with the HTML snippet get a 404 for /static/array.js and send no events",
      fix,
    );
  } catch (error) {
    return check.fail(`posthog-js cannot be read: ${(error as Error).message}`, fix);
  }
}
