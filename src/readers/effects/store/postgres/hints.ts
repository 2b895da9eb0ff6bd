// What the effects say beside what the server says, where another program would say another thing.

const notTheTables = "the tables are not there: `penstock effects` makes them when it starts";

/** By SQLSTATE. */
export const hints = {
  "42501": "the user may not do this: let it own the database, or the schema penstock_effects",
  "42P01": notTheTables,
  "3F000": notTheTables,
};
