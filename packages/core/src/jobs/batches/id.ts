import { lowBits, newId, withLowBits } from '../../id.ts'

/**
 * A batch id ends in nine zero bits, which a job id replaces with the job's index. The id of a job therefore determines
 * its batch before the job is stored.
 */

const indexBits = 9
export const maxJobIndex = 2 ** indexBits - 1

export const newBatchId = (): string => withLowBits(newId('batch'), indexBits, 0)

export const jobIdOf = (batchId: string, index: number): string =>
  withLowBits(`job${batchId.slice('batch'.length)}`, indexBits, index)

/** The id is derived even if the job belongs to no batch, so callers must check that the batch exists. */
export const batchIdOf = (jobId: string): string => withLowBits(`batch${jobId.slice('job'.length)}`, indexBits, 0)

export const jobIndexOf = (jobId: string): number => lowBits(jobId, indexBits)
