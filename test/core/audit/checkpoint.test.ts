import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as Audit from '@platform/core/audit/audit'
import { writeCheckpoints } from '@platform/core/audit/checkpoint-target'
import { platformError } from '@platform/core/error'
import { countUnknownName, flushCounted, recordDenied } from '@platform/core/audit/counted-entries'
import type { Caller } from '@platform/core/caller'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get, remove, replace, upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { describeScripts } from '@platform/core/jobs/describe-scripts'
import { ensureKeys } from '@platform/core/signing/keys'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { bootstrapPlatform, newCaller } from '../../support/fixtures.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { auditEffect, readAuditEntries, commitEffects, drainOutbox } from '../support/outbox.ts'

beforeAll(() => ensureKeys())

async function addEntries(caller: Caller, count: number): Promise<void> {
  for (let index = 0; index < count; index++)
    await commitEffects(caller, auditEffect('test.change', `resource ${index}`))
  await drainOutbox(caller.organisationId)
}

async function trailOf(count: number): Promise<Caller> {
  const caller = await newCaller()
  await addEntries(caller, count)
  return caller
}

/** Removes the newest entries, as an attacker with access to the table could. */
async function truncate({ organisationId }: Caller, to: number, from: number): Promise<void> {
  const lastEntry = await get(keys.auditEntry(organisationId, to))
  for (let seq = to + 1; seq <= from; seq++) await transact([remove(keys.auditEntry(organisationId, seq))])
  const head = { auditSeq: to, auditHash: String(lastEntry?.['hash']) }
  await transact([upsert(keys.organisationCounts(organisationId), { set: head })])
}

test('a checkpoint detects that the newest entries were removed, also after new ones were added', async () => {
  const caller = await trailOf(5)
  const { checkpoint, seq } = await Audit.checkpoint(caller)
  expect(seq).toBe(5)
  await addEntries(caller, 2)
  expect(await Audit.verify(caller, { after: 0, checkpoint })).toMatchObject({ valid: true, entries: 7 })
  await truncate(caller, 4, 7)
  expect(await Audit.verify(caller, { after: 0 })).toMatchObject({ valid: true, entries: 4 })
  expect(await Audit.verify(caller, { after: 0, checkpoint })).toMatchObject({ valid: false, firstBroken: 5 })
  await addEntries(caller, 3)
  expect(await Audit.verify(caller, { after: 0 })).toMatchObject({ valid: true, entries: 7 })
  expect(await Audit.verify(caller, { after: 0, checkpoint })).toMatchObject({ valid: false, firstBroken: 5 })
})

test('a checkpoint of another organisation, or with another content or type, is rejected', async () => {
  const [caller, otherCaller] = [await trailOf(1), await trailOf(1)]
  const { checkpoint } = await Audit.checkpoint(caller)
  const [header = '', claims = '', signature = ''] = checkpoint.split('.')
  const changedClaims = Buffer.from(String(Buffer.from(claims, 'base64url')).replace('"seq":1', '"seq":0')).toString(
    'base64url',
  )
  for (const text of [
    '',
    'a.b.c',
    `${header}.${changedClaims}.${signature}`,
    `${header}.${claims}.`,
    `${checkpoint}x`,
  ]) {
    await expect(Audit.verify(caller, { after: 0, checkpoint: text })).rejects.toMatchObject({
      code: 'validation_failed',
    })
  }
  await expect(Audit.verify(otherCaller, { after: 0, checkpoint })).rejects.toMatchObject({ code: 'validation_failed' })
})

test('an export is recorded, and its last part has the checkpoint of its last entry', async () => {
  const caller = await trailOf(2)
  const { text, next, checkpoint } = await Audit.exportPage(caller, { format: 'ndjson', after: 0 })
  expect([text.trim().split('\n').length, next]).toEqual([2, undefined])
  await drainOutbox(caller.organisationId)
  expect((await readAuditEntries(caller)).at(-1)).toMatchObject({
    action: 'audit.export',
    detail: 'Entries 1 to 2 as ndjson',
  })
  await truncate(caller, 1, 3)
  expect(await Audit.verify(caller, { after: 0, checkpoint })).toMatchObject({ valid: false, firstBroken: 2 })
})

test('the checkpoint of a trail is written once to a folder, and again when the trail has grown', async () => {
  await using folder = await temporaryFolder()
  await bootstrapPlatform()
  const caller = await trailOf(3)
  const { organisationId } = caller
  await transact([replace(keys.organisation(organisationId), { id: organisationId })])
  config.PLAT_AUDIT_CHECKPOINT_TARGET = join(folder.path, 'checkpoints')
  await Promise.all([writeCheckpoints(), writeCheckpoints()])
  await addEntries(caller, 1)
  await writeCheckpoints()
  const names = (await readdir(join(folder.path, 'checkpoints', organisationId))).toSorted()
  expect(names).toEqual([expect.stringMatching(/^0{11}3-\w{16}\.jws$/), expect.stringMatching(/^0{11}4-\w{16}\.jws$/)])
  const checkpoint = (await readFile(join(folder.path, 'checkpoints', organisationId, names[1] ?? ''), 'utf8')).trim()
  expect(await Audit.verify(caller, { after: 0, checkpoint })).toMatchObject({ valid: true, entries: 4 })
  config.PLAT_AUDIT_CHECKPOINT_TARGET = ''
})

test('writes missing checkpoints only, of trails with entries, also after one of them cannot be written', async () => {
  await using folder = await temporaryFolder()
  const [emptyCaller, failingCaller, caller] = [await newCaller(), await trailOf(1), await trailOf(1)]
  const pathOf = ({ organisationId }: Caller) => join(folder.path, organisationId)
  for (const { organisationId } of [emptyCaller, failingCaller, caller])
    await transact([replace(keys.organisation(organisationId), { id: organisationId })])
  await writeFile(pathOf(failingCaller), 'not a folder')
  await writeCheckpoints()
  config.PLAT_AUDIT_CHECKPOINT_TARGET = folder.path
  onTestFinished(() => void (config.PLAT_AUDIT_CHECKPOINT_TARGET = ''))
  const write = () =>
    expect(writeCheckpoints()).rejects.toThrow(`1 audit checkpoints were not written to ${folder.path}`)
  await write()
  const [name = ''] = await readdir(pathOf(caller))
  const { ino } = await stat(join(pathOf(caller), name))
  await write()
  expect(await stat(join(pathOf(caller), name))).toMatchObject({ ino })
  expect(await readdir(folder.path)).not.toContain(emptyCaller.organisationId)
})

const denial = platformError('forbidden', { requiredPermission: 'clusters:write' })

test('the first denied call of a caller is recorded at once, and later ones are counted', async () => {
  const caller = await newCaller()
  for (let call = 0; call < 4; call++) await recordDenied(caller, 'POST /api/v1/clusters', denial)
  await flushCounted()
  await drainOutbox(caller.organisationId)
  const entries = (await readAuditEntries(caller)).filter(({ action }) => action === 'access.denied')
  expect(entries.map(({ detail }) => detail)).toEqual([
    'requires clusters:write; 1 call',
    'requires clusters:write; 3 calls',
  ])
})

test('records denied calls of at most 50 callers of an organisation at a time, so that those of others are recorded too', async () => {
  const [floodingCaller, otherCaller] = [await newCaller(), await newCaller()]
  for (let token = 0; token < 60; token++)
    await recordDenied({ ...floodingCaller, tokenId: newId('tok') }, 'POST /api/v1/jobs', denial)
  await recordDenied(otherCaller, 'POST /api/v1/jobs', denial)
  await flushCounted()
  const counts = await Promise.all(
    [floodingCaller, otherCaller].map(async ({ organisationId }) => {
      await drainOutbox(organisationId)
      return (await readAuditEntries({ organisationId })).filter(({ action }) => action === 'access.denied').length
    }),
  )
  expect(counts).toEqual([50, 1])
})

test('sign-ins with unknown names are counted without the names, in the trail of the platform', async () => {
  const organisationId = newId('org')
  for (const address of ['192.0.2.1', '192.0.2.2']) countUnknownName(address, async () => organisationId)
  await flushCounted()
  await drainOutbox(organisationId)
  const entries = await readAuditEntries({ organisationId })
  expect(entries).toMatchObject([{ detail: 'Unknown user name; 2 calls', address: '192.0.2.2' }])
})

test('scripts are described by hash and size, of more than twenty also by one hash of all', () => {
  const hash = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824'
  expect(describeScripts(['hello', 'hello'])).toBe(`script SHA-256 ${hash} (5 bytes)`)
  expect(describeScripts(['hello', 'é'])).toMatch(
    new RegExp(`^scripts SHA-256 ${hash} \\(5 bytes\\), .* \\(2 bytes\\)$`),
  )
  const scripts = Array.from({ length: 500 }, (_, index) => `echo ${index}`)
  expect(describeScripts(scripts)).toMatch(/ and 480 more; SHA-256 of this list of all: [\da-f]{64}$/)
  expect(describeScripts(scripts).length).toBeLessThan(1900)
})
