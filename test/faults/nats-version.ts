import { compareVersions, parseVersion } from "../../src/platform/base/forms.ts";

export function isOlder(version: string, than: string): boolean {
  return compareVersions(parseVersion(version)!, parseVersion(than)!) < 0;
}
