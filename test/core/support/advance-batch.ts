import { advanceBatch } from '@platform/core/jobs/batches/advance'

// Consumes a message of the batches queue in a process that a failpoint kills. Arguments: organisation and batch id.
const [, , organisationId = '', batchId = ''] = process.argv
await advanceBatch({ organisationId, batchId })
