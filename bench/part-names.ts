/** The parts of the bench, in the order in which they run. Imports nothing: settings are read when core is first imported. */
export const partNames = [
  'counts',
  'cold',
  'cpu',
  'batch',
  'paging',
  'start',
  'http',
  'drain',
  'latency',
  'neighbour',
  'modules',
  'money',
] as const

export type PartName = (typeof partNames)[number]

export const isPartName = (name: string): name is PartName => partNames.some((each) => each === name)
