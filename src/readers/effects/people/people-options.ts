// The bounds of people and groups, and what they are unless somebody says otherwise.

export interface PeopleOptions {
  /** About how much the rows in memory may come to, beside those of the batches under way. */
  readonly cacheBytesMax?: number;
  /** Distinct ids that a person may have; a link to more is refused. */
  readonly idsMax?: number;
  /** Names and values that a person, and that a group may have. */
  readonly propertyBytesMax?: number;
  /** How many properties they may have. */
  readonly propertiesMax?: number;
  /** What all those of a project may have together that have more than 64 KiB each. */
  readonly largeBytesMax?: number;
  readonly groupTypesMax?: number;
  readonly depthMax?: number;
}

const mebibyte = 1_048_576;

export const defaults: Required<PeopleOptions> = {
  cacheBytesMax: 256 * mebibyte,
  idsMax: 10_000,
  propertyBytesMax: mebibyte / 2,
  propertiesMax: 1_000,
  largeBytesMax: 64 * mebibyte,
  groupTypesMax: 100,
  depthMax: 64,
};
