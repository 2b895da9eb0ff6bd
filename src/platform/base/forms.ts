const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const projectIdForm = /^[A-Za-z0-9_-]{1,64}$/;

export function isUuid(text: string): boolean {
  return uuidForm.test(text);
}

/** Returns whether a UUID is the nil or the max UUID, which identify nothing. */
export function isBlankUuidText(uuid: string): boolean {
  return /^[0-]+$|^[f-]+$/i.test(uuid);
}

/** The form that the database returns. */
export function isLowerCaseUuid(text: string): boolean {
  return uuidForm.test(text) && text === text.toLowerCase();
}

export function isProjectId(text: string): boolean {
  return projectIdForm.test(text);
}
