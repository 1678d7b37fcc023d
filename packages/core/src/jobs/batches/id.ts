import { lowBits, newId, withLowBits } from '../../id.ts'

/**
 * Ids of batches and their jobs. A batch id ends in nine zero bits, which a job id replaces by the job's index. So a job
 * id determines its batch before the job is stored.
 */

const indexBits = 9

export const newBatchId = (): string => withLowBits(newId('batch'), indexBits, 0)

/** The id of a batch's job, by its index from 0 to 499. */
export const jobIdOf = (batchId: string, index: number): string =>
  withLowBits(`job${batchId.slice('batch'.length)}`, indexBits, index)

/** The id of the batch to which a job would belong. */
export const batchIdOf = (jobId: string): string => withLowBits(`batch${jobId.slice('job'.length)}`, indexBits, 0)

/** The index of a job in its batch. */
export const indexOf = (jobId: string): number => lowBits(jobId, indexBits)
