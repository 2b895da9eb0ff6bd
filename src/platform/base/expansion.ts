// How many bytes a project may store beyond a multiple of the bytes that were sent for them: equal
// events compress a thousand times and more. The meter limits them; errors and settings name the
// limit.

export const expansionBytesAMinute = 67_108_864;

/** The same number, for texts. */
export const expansionText = `${expansionBytesAMinute / 1_048_576} MiB`;
