import { expect, test } from 'vitest'
import { batchIdOf, indexOf, jobIdOf, newBatchId } from '@platform/core/jobs/batches/id'
import { isId, newId, timeOf } from '@platform/core/id'

const indexes = Array.from({ length: 500 }, (_, index) => index)

test('a batch and its 500 jobs name each other by their ids, which are ids like any other', () => {
  for (let round = 0; round < 50; round++) {
    const batchId = newBatchId()
    const jobIds = indexes.map((index) => jobIdOf(batchId, index))
    expect(isId('batch', batchId)).toBe(true)
    expect(new Set(jobIds).size).toBe(500)
    expect(jobIds.every((id) => isId('job', id) && timeOf(id) === timeOf(batchId))).toBe(true)
    expect(jobIds.map(batchIdOf)).toEqual(jobIds.map(() => batchId))
    expect(jobIds.map(indexOf)).toEqual(indexes)
  }
})

test('jobs of a batch sort in the order of the request', () => {
  const batchId = newBatchId()
  const jobIds = indexes.map((index) => jobIdOf(batchId, index))
  expect(jobIds.toSorted()).toEqual(jobIds)
})

test('a job that came alone leads to a batch id that is well formed', () => {
  for (let round = 0; round < 1000; round++) expect(isId('batch', batchIdOf(newId('job')))).toBe(true)
})
