// The limits of people and groups, and their defaults.

export interface PeopleOptions {
  /** Approximate maximum size of rows in memory, in addition to those of the current batches. */
  readonly cacheBytesMax?: number;
  /** Maximum number of distinct ids of a person; a link that exceeds it is refused. */
  readonly idsMax?: number;
  /** Maximum size of the names and values of a person or group. */
  readonly propertyBytesMax?: number;
  /** Maximum number of properties of a person or group. */
  readonly propertiesMax?: number;
  /**
   * Maximum total size, per project, of the properties of people and groups with more than 64 KiB
   * each.
   */
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
