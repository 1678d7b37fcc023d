import { advanceBatch } from '@platform/core/jobs/batches/advance'

// A consumer of the batches queue in a process of its own, so that a failpoint can kill it: organisation and batch.
const [, , organisationId = '', batchId = ''] = process.argv
await advanceBatch({ organisationId, batchId })
