// Instructions to add the first project to a gateway, for a 401, the log, `/readyz`, doctor and the
// list of projects. The command can be copied: it contains no placeholder.

export const firstProject =
  "`penstock project add my-project` (in a clone `./penstock project add my-project`)";
