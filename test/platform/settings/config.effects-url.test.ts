import { expect, test } from "vitest";
import { readConfig } from "../../../src/platform/settings/read-config.ts";

test.each([
  "sqlite:",
  "sqlite:/var/lib/penstock/effects.sqlite",
  "sqlite:people.db",
  "postgres://penstock:secret@db:5432/effects?sslmode=require",
  "postgresql:///effects?host=/run/postgresql",
])("PENSTOCK_EFFECTS_URL may be %s", (url) => {
  expect(readConfig({ PENSTOCK_EFFECTS_URL: url }, {})).toMatchObject({
    ok: true,
    config: { effectsUrl: url },
  });
});

test.each(["", "effects.sqlite", "mysql://me:hunter2@db/effects", "postgres://me:hunter2@"])(
  "PENSTOCK_EFFECTS_URL=%j is rejected without its value in the error",
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
