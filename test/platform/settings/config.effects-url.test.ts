// The database of the effects: which texts name one, and that a password in one is in no message.

import { expect, test } from "vitest";
import { readConfig } from "../../../src/platform/settings/read-config.ts";

test.each([
  "sqlite:",
  "sqlite:/var/lib/penstock/effects.sqlite",
  "sqlite:people.db",
  "postgres://penstock:secret@db:5432/effects?sslmode=require",
  "postgresql:///effects?host=/run/postgresql",
])("%s names a database", (url) => {
  expect(readConfig({ PENSTOCK_EFFECTS_URL: url }, {})).toMatchObject({
    ok: true,
    config: { effectsUrl: url },
  });
});

test.each(["", "effects.sqlite", "mysql://me:hunter2@db/effects", "postgres://me:hunter2@"])(
  "%j names none, and no message shows it",
  (url) => {
    const result = readConfig({ PENSTOCK_EFFECTS_URL: url }, {});
    expect(result).toEqual({
      ok: false,
      faults: [
        "PENSTOCK_EFFECTS_URL: must be sqlite:<file>, sqlite:, or postgres://user:password@host/database",
      ],
    });
  },
);
