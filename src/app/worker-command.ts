// What the supervisor calls its workers by, apart from what they load.

/** The hidden subcommand that a worker process is started with. */
export const workerCommand = "worker";
