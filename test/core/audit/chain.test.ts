import * as Audit from '@platform/core/audit/audit'
import * as keys from '@platform/core/db/keys'
import { get, batchPut, remove, replace, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { sha256 } from '@platform/core/id'
import { expect, test } from 'vitest'
import { organisationWithEntries } from '../support/trail.ts'

/** Hands of somebody who may write to the table. */
const stored = async (organisationId: string, seq: number): Promise<any> => get(keys.auditEntry(organisationId, seq))
const changed = (text: string): string => text.replace(/detail \d/, 'detail X')
const tampering: [string, number, (organisationId: string) => Promise<unknown>][] = [
  [
    'an entry is changed',
    4,
    async (id) => update(keys.auditEntry(id, 4), { set: { entry: changed((await stored(id, 4)).entry) } }),
  ],
  [
    'an entry and its hash are changed',
    5,
    async (id) => {
      const entry = changed((await stored(id, 4)).entry)
      await update(keys.auditEntry(id, 4), { set: { entry, hash: sha256(entry) } })
    },
  ],
  ['an entry is no text any more', 4, (id) => update(keys.auditEntry(id, 4), { set: { entry: 7 } })],
  [
    'an entry is nonsense with the right hash',
    4,
    (id) => update(keys.auditEntry(id, 4), { set: { entry: 'nonsense', hash: sha256('nonsense') } }),
  ],
  ['the first entry is removed', 1, (id) => transact([remove(keys.auditEntry(id, 1))])],
  ['an entry is removed', 4, (id) => transact([remove(keys.auditEntry(id, 4))])],
  ['the last entry is removed', 9, (id) => transact([remove(keys.auditEntry(id, 9))])],
  [
    'an entry is hidden from a filter',
    4,
    (id) => update(keys.auditEntry(id, 4), { set: { gsi1pk: keys.auditPartition(id, 'actor', 'nobody') } }),
  ],
  [
    'two entries change places',
    3,
    async (id) => {
      const [third, fourth] = [await stored(id, 3), await stored(id, 4)]
      await batchPut([
        { ...third, ...keys.auditEntry(id, 4) },
        { ...fourth, ...keys.auditEntry(id, 3) },
      ])
    },
  ],
  [
    'the last entry is replaced by a whole one',
    9,
    async (id) => {
      const last = await stored(id, 9)
      const entry = changed(String(last.entry))
      await batchPut([{ ...last, entry, hash: sha256(entry) }])
    },
  ],
  [
    'an entry of another organisation is put in its place',
    1,
    async (id) => {
      const { organisationId } = await organisationWithEntries(1)
      const { pk: _, sk: __, ...foreign } = await stored(organisationId, 1)
      await transact([replace(keys.auditEntry(id, 1), foreign)])
    },
  ],
]

test.each(tampering)('%s: verify finds number %i', async (_, seq, tamper) => {
  const caller = await organisationWithEntries(9)
  expect(await Audit.verify(caller, { after: 0 })).toMatchObject({ valid: true, entries: 9 })
  await tamper(caller.organisationId)
  const found = await Audit.verify(caller, { after: 0 })
  expect(found).toMatchObject({ valid: false, firstBroken: seq, entries: seq === 9 ? expect.any(Number) : seq - 1 })
  expect(found).not.toHaveProperty('next')
  // In parts it is found as well.
  const parts = await Promise.all([0, 3, 6].map((after) => Audit.verify(caller, { after }, 3)))
  expect(parts.filter(({ valid }) => !valid).map(({ firstBroken }) => firstBroken)).toContain(seq)
})
