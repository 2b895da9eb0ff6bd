export interface PeopleOptions {
  /** Approximate bytes of cached rows, in addition to the rows of the current batches. */
  readonly cacheBytesMax?: number;
  /** Maximum number of distinct ids per person. */
  readonly idsMax?: number;
  /** Maximum bytes of the names and values of a person or group. */
  readonly propertyBytesMax?: number;
  readonly propertiesMax?: number;
  /** Maximum bytes per project of the properties of people and groups above 64 KiB each. */
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
