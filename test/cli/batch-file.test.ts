import { expect, test } from 'vitest'
import { readBatchFile } from '../../packages/cli/src/jobs/batch-file.ts'

const job = { cluster: 'edge', script: 'true' }
const read = (batch: object) => readBatchFile(JSON.stringify(batch))

test('passes on the limits of the batch and of each job', () => {
  const limited = { ...job, timeoutSeconds: 60, deliverWithinSeconds: 5 }
  expect(read({ jobs: [limited], maxConcurrency: 1, maxErrors: 0 })).toEqual({
    entries: [
      {
        cluster: 'edge',
        submission: { type: 'InvokeScript', payload: { script: 'true', timeoutSeconds: 60 }, deliverWithinSeconds: 5 },
      },
    ],
    limits: { maxConcurrency: 1, maxErrors: 0 },
  })
  expect(read([job]).limits).toEqual({})
})

test.each([
  ['maxConcurrency', { jobs: [job], maxConcurrency: '1' }, 'The batch has a maxConcurrency that is not a number.'],
  ['maxErrors', { jobs: [job], maxErrors: null }, 'The batch has a maxErrors that is not a number.'],
  ['a name that no batch has', { jobs: [job], maxconcurrency: 1 }, 'The batch has an unknown field maxconcurrency.'],
  [
    'timeoutSeconds',
    [job, { ...job, timeoutSeconds: '60' }],
    'Job 2 of the batch has a timeoutSeconds that is not a number.',
  ],
  [
    'deliverWithinSeconds',
    [{ ...job, deliverWithinSeconds: '5' }],
    'Job 1 of the batch has a deliverWithinSeconds that is not a number.',
  ],
])('a limit that would be left out is refused instead: %s', (_, batch, message) => {
  expect(() => read(batch)).toThrow(message)
})
