// Limits of a rules file. They bound the work of a check, and of each event in a gateway.

export const rulesFileBytesMax = 262_144;
export const rulesMax = 200;
export const schemasMax = 100;
/** Maximum elements of a list, and members of a map, in one rule. */
export const elementsMax = 200;
/** Maximum characters of an event name, a pattern, a path or a value. */
export const ruleTextCharsMax = 200;
/** Maximum characters of a text that globs read. The rest is ignored. */
export const globbedCharsMax = 200;
/** Maximum steps of the rules for one event. `rules-work.ts` counts them. */
export const stepsMax = 150;
/** Maximum number of bytes to which a text is cut. */
export const cutBytesMax = 4_096;
/** Maximum nesting of maps and lists, including the schemas. */
export const rulesDepthMax = 32;
/** Maximum nesting of schemas. The schema of `properties` is the first level. */
export const schemaLevelsMax = 5;
/** Maximum keywords and properties in one schema. */
export const schemaMembersMax = 500;
/** Maximum number of reported errors. */
export const ruleErrorsMax = 50;
