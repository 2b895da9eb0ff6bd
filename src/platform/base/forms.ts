// Forms of text that several rooms ask for: what a UUID looks like, and what a project's id.

const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const projectIdForm = /^[A-Za-z0-9_-]{1,64}$/;

/** Whether it is 36 characters of hexadecimal digits, in whatever case, and hyphens. */
export function isUuid(text: string): boolean {
  return uuidForm.test(text);
}

/** Whether a UUID is the nil or the max UUID, which name nothing. */
export function isBlankUuidText(uuid: string): boolean {
  return /^[0-]+$|^[f-]+$/i.test(uuid);
}

/** Whether it is a UUID as the database shows them. */
export function isLowerCaseUuid(text: string): boolean {
  return uuidForm.test(text) && text === text.toLowerCase();
}

export function isProjectId(text: string): boolean {
  return projectIdForm.test(text);
}
