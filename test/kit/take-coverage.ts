// A setup file of vitest for coverage. Test processes are killed at the end, so each process writes
// its counts after every test file.

import { takeCoverage } from "node:v8";
import { afterAll } from "vitest";

afterAll(() => takeCoverage());
