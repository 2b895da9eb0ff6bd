// How to add the first project. The command can be copied: it has no placeholder.

export const firstProject =
  "`penstock project add my-project` (in a clone `./penstock project add my-project`)";
