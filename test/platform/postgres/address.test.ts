import { expect, test } from "vitest";
import { StoreError } from "../../../src/platform/base/store-error.ts";
import { readAddress } from "../../../src/platform/postgres/address.ts";

test("an invalid PostgreSQL URL is reported without its content", () => {
  for (const url of ["mysql://u:secret@h/d", "secret", "postgres://u:sec%ret@h/d"]) {
    expect(() => readAddress(url)).toThrow(StoreError);
    expect(() => readAddress(url)).not.toThrow(/secret|sec%/);
  }
  expect(() => readAddress("postgres://h/d?sslmode=maybe")).toThrow(
    "sslmode must be one of disable",
  );
  expect(() => readAddress("postgres://h/d?pool=3")).toThrow("unknown parameter pool");
  expect(() => readAddress("postgres://h/d?sslrootcert=/no/such")).toThrow(
    "cannot read sslrootcert",
  );
});

test("a PostgreSQL URL is shown as host, port and database", () => {
  const shown = (url: string): string => readAddress(url).shown;
  expect(shown("postgres://ann:pw@db.example.org:6432/effects")).toBe(
    "db.example.org:6432/effects",
  );
  expect(shown("postgresql://ann@[::1]")).toBe("[::1]:5432/ann");
  expect(shown("postgres://ann@localhost/effects?host=/run/postgresql")).toBe(
    "/run/postgresql/effects",
  );
});
