import { randomBytes } from 'node:crypto'
import { jsonRequest, type TestRequest } from '../../support/request.ts'
import { range } from '../support/statistics.ts'
import { bearer } from '../support/tenant.ts'

/** Batches as callers submit them. */

/** The most jobs of one batch. */
export const jobsInBatch = 500

const jobOf = (clusterId: string, script: unknown) => ({ clusterId, type: 'InvokeScript', payload: { script } })

/** A request that submits a job for each cluster, with the script that is made for its place. */
export const submission = (
  accessToken: string,
  clusterIds: readonly string[],
  script: (index: number) => unknown,
): TestRequest => {
  const jobs = clusterIds.map((clusterId, index) => jobOf(clusterId, script(index)))
  return jsonRequest('/api/v1/jobs/batch', { jobs }, bearer(accessToken))
}

/** As many clusters as a batch has jobs, taken in turn from some. */
export const inTurn = (clusterIds: readonly string[]): string[] =>
  range(jobsInBatch).map((index) => clusterIds[index % clusterIds.length] ?? '')

/** One script of 1 KB, which compresses well. */
export const sameScript = (): string => '#!/bin/sh\nset -eu\nuname -a\ndf -h | sort\n'.padEnd(1024, 'true && ')

const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
const lineLength = 64

/** A script of its own: lines of random letters and digits, which nothing compresses below 65 %. */
export const noise = (length: number) => (): string => {
  const text = Array.from(randomBytes(length), (byte) => letters[byte % letters.length]).join('')
  return text.replaceAll(new RegExp(`.{${lineLength - 1}}.`, 'g'), (line) => `${line.slice(0, -1)}\n`)
}
