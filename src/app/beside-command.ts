// The name of a hidden command, which both ends of `up` and its effects process have to know.

/** What `penstock effects` has below it for the process that `up` runs beside its gateway. */
export const besideCommand = "beside";
