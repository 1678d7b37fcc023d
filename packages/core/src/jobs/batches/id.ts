import { lowBits, newId, withLowBits } from '../../id.ts'

/**
 * Ids of batches and of the jobs in them (D29). A batch's id ends in nine zero bits; job i of it has the same time and the
 * same bits plus i. Each tells the other: a job's id leads to its batch before the job stands in the table.
 */

const indexBits = 9

/** A fresh id of a batch. */
export const newBatchId = (): string => withLowBits(newId('batch'), indexBits, 0)

/** The id of a batch's job at an index from 0 to 499. */
export const jobIdOf = (batchId: string, index: number): string =>
  withLowBits(`job${batchId.slice('batch'.length)}`, indexBits, index)

/** The id of the batch that a job belongs to, if it belongs to any. */
export const batchIdOf = (jobId: string): string => withLowBits(`batch${jobId.slice('job'.length)}`, indexBits, 0)

/** The index of a job in its batch. */
export const indexOf = (jobId: string): number => lowBits(jobId, indexBits)
