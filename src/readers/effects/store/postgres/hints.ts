const notTheTables = "the tables do not exist: `penstock effects` creates them when it starts";

/** Advice by SQLSTATE. */
export const hints = {
  "42501": "the user lacks a privilege: let it own the database, or the schema penstock_effects",
  "42P01": notTheTables,
  "3F000": notTheTables,
};
