// How much a project may store of what comes to far more bytes than were sent for it. The meter
// holds to it, and errors and settings name it.

/** So many bytes a minute: equal events compress a thousand times and more. */
export const expansionBytesAMinute = 8_388_608;

/** The same number, as texts say it. */
export const expansionText = `${expansionBytesAMinute / 1_048_576} MiB`;
