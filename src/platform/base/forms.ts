const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const projectIdForm = /^[A-Za-z0-9_-]{1,64}$/;

export function isUuid(text: string): boolean {
  return uuidForm.test(text);
}

export function isBlankUuidText(uuid: string): boolean {
  return /^[0-]+$|^[f-]+$/i.test(uuid);
}

export function isLowerCaseUuid(text: string): boolean {
  return uuidForm.test(text) && text === text.toLowerCase();
}

export function isProjectId(text: string): boolean {
  return projectIdForm.test(text);
}

export type Version = readonly [number, number, number];

export function parseVersion(text: string): Version | undefined {
  const match = /(\d+)\.(\d+)\.(\d+)/.exec(text);
  return match === null ? undefined : [Number(match[1]), Number(match[2]), Number(match[3])];
}

export function compareVersions(left: Version, right: Version): number {
  return left[0] - right[0] || left[1] - right[1] || left[2] - right[2];
}
