import type { Claim } from '@platform/contract/relay'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId, signStatement } from './support/peer-job.ts'
import { Stage } from './support/stage.ts'

let stage: Stage

beforeAll(async () => {
  stage = await Stage.set()
})

afterAll(() => stage.clear())

const foreignKeys = generateKeyPairSync('ed25519')

const forgeries: Record<string, (claim: Claim, jobId: string) => Claim> = {
  'signed by a key that is not the pinned one': (claim, jobId) => ({
    ...claim,
    statement: sign(claim, { jobId }, { kid: stage.peer.signer.kid, privateKey: foreignKeys.privateKey }),
  }),
  'signed by a key that is not pinned': (claim, jobId) => ({
    ...claim,
    statement: sign(claim, { jobId }, { kid: 'another-key', privateKey: foreignKeys.privateKey }),
  }),
  'not signed': (claim) => ({ ...claim, statement: `${claim.statement.split('.').slice(0, 2).join('.')}.` }),
  expired: (claim, jobId) => ({ ...claim, statement: sign(claim, { jobId, exp: Date.now() / 1000 - 1 }) }),
  'for another cluster': (claim, jobId) => ({ ...claim, statement: sign(claim, { jobId, clusterId: newId('clus') }) }),
  'for another job': (claim) => ({ ...claim, statement: sign(claim, { jobId: newId('job') }) }),
  'changed on the way': (claim) => ({ ...claim, payload: { ...claim.payload, timeoutSeconds: 1 } }),
  'of a payload that is no script': (claim, jobId) => ({
    ...claim,
    statement: sign({ ...claim, payload: { command: 'x' } }, { jobId }),
    payload: { command: 'x' },
  }),
}

function sign(
  { payload }: Pick<Claim, 'payload'>,
  statement: { jobId: string; clusterId?: string; exp?: number },
  signer: Parameters<typeof signStatement>[1] = stage.peer.signer,
): string {
  return signStatement({ clusterId: stage.peer.clusterId, payload, ...statement }, signer)
}

test.for(Object.keys(forgeries))('a job whose statement is %s is rejected and never run', async (name) => {
  const ledger = stage.file(name)
  const job = stage.peer.addJob({ script: `echo ran >> '${ledger}'` })
  job.tamper = (claim) => forgeries[name]!(claim, job.id)
  await stage.peer.until(() => job.completion !== undefined)
  expect(job.completion).toMatchObject({ outcome: 'rejected', exitCode: null, nodes: [] })
  expect(existsSync(ledger)).toBe(false)
})

test('a job that is replayed is rejected and not run again', async () => {
  const ledger = stage.file('ledger')
  const job = await stage.peer.run({ script: `echo ran >> ${ledger}` })
  job.offerAgain()
  stage.peer.changed()
  await stage.peer.until(() => job.completion !== undefined)
  expect(job.reports.map(({ outcome }) => outcome)).toEqual(['exited', 'rejected'])
  expect(readFileSync(ledger, 'utf8')).toBe('ran\n')
})

test('a statement of one job does not let another one run', async () => {
  const first = await stage.peer.run({ script: 'true' })
  const second = stage.peer.addJob({ script: 'true' })
  second.tamper = () => first.claim!
  await stage.peer.until(() => second.reports.length > 0)
  expect(second.reports[0]?.outcome).toBe('rejected')
})
