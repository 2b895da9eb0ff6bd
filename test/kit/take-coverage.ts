// A setup file of vitest for coverage. Each process writes its counts after every test file,
// because test processes are killed at the end.

import { takeCoverage } from "node:v8";
import { afterAll } from "vitest";

afterAll(() => takeCoverage());
