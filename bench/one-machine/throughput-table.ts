/** How results of throughput are told apart from others, by whoever reads them. */
export const throughputTitle = 'One machine: reading one cluster over HTTP'
export const throughputColumns = [
  'handler',
  'requests/s',
  'ratio, median',
  'min',
  'max',
  'p50 ms',
  'p99 ms',
  'p99 ratio',
]
