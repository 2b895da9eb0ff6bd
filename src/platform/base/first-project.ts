// How a gateway that has no project gets its first one. A 401, the log, `/readyz`, doctor and the
// list of projects say it alike. The command can be copied: it has no placeholder in it.

export const firstProject =
  "`penstock project add my-project` (in a clone `./penstock project add my-project`)";
