/** How results of cold starts are told apart from others, by whoever reads them. */
export const coldTitle = 'Functions as they are shipped, and their first answer'
export const coldColumns = [
  'function',
  'KiB',
  'gzip',
  'late',
  'ms',
  'ratio',
  'CPU ms',
  'CPU ratio',
  'min',
  'max',
  'cached',
  '× nest',
  'MB',
  'MB ratio',
]
