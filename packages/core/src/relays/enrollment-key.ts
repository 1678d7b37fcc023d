import { clusterTypes } from '@platform/contract/cluster'
import {
  type CreatedEnrollmentKey,
  type EnrollmentKey,
  type EnrollmentKeyCreation,
  enrollmentKeyLimit,
  maxEnrollmentKeyDays,
} from '@platform/contract/enrollment-key'
import * as z from 'zod'
import { reauthorize } from '../accounts/current-rights.ts'
import type { Caller } from '../caller.ts'
import { iso, now, optionalTimestamp } from '../clock.ts'
import { relayCommand } from '../clusters/enrollment-token.ts'
import { pageOfRange } from '../db/index-page.ts'
import * as keys from '../db/keys.ts'
import { paged, type PageQuery } from '../db/paging.ts'
import { check, count, create as createItem, getConsistent, type Item, orThrow, patch, upsert } from '../db/table.ts'
import { limitReachedError, platformError, validationFailedError } from '../error.ts'
import { isId, newId, newSecret, sha256 } from '../id.ts'
import { commit } from '../outbox/commit.ts'
import { submitterFields, submitterOf, submitterView } from '../submitter.ts'

/** An enrollment key has the form `<public id>.<secret>`. Only the secret's hash is stored. */

export const EnrollmentKeyRecord = z.object({
  id: z.string(),
  organisationId: z.string(),
  hash: z.string(),
  name: z.string(),
  type: z.enum(clusterTypes),
  siteId: z.string().optional(),
  labels: z.record(z.string(), z.string()),
  maxUses: z.number(),
  used: z.number().default(0),
  requireApproval: z.boolean(),
  nameTemplate: z.string(),
  expiresAtMs: z.number(),
  createdAtMs: z.number(),
  lastUsedAtMs: z.number().optional(),
  revokedAtMs: z.number().optional(),
  tokenId: z.string().optional(),
  ...submitterFields,
})
/** The time within which a relay can repeat its enrollment. */
const repeatSeconds = 7 * 86_400

export const repeatableUntil = (): number => Math.ceil(now() / 1000) + repeatSeconds

export type EnrollmentKeyRecord = z.infer<typeof EnrollmentKeyRecord>

const enrollmentKeyView = (record: EnrollmentKeyRecord): EnrollmentKey => ({
  id: record.id,
  name: record.name,
  type: record.type,
  ...(record.siteId !== undefined && { siteId: record.siteId }),
  labels: record.labels,
  maxUses: record.maxUses,
  usedCount: record.used,
  requireApproval: record.requireApproval,
  nameTemplate: record.nameTemplate,
  expiresAt: iso(record.expiresAtMs),
  createdAt: iso(record.createdAtMs),
  createdBy: submitterView(record),
  ...optionalTimestamp('lastUsedAt', record.lastUsedAtMs),
})

const rangeOf = (organisationId: string) => ({ index: 'gsi1', pk: keys.enrollmentKeysOf(organisationId) }) as const

export const list = ({ organisationId }: Caller, query: PageQuery) =>
  paged(['enrollment-keys', organisationId], query, async (page) => {
    const range = rangeOf(organisationId)
    const { keys: pageKeys, totalCount, next } = await pageOfRange(range, () => count(range), page)
    const items = pageKeys.length === 0 ? [] : await getConsistent(pageKeys, { mayBeStale: true })
    const records = items.filter((item) => item !== undefined).map((item) => EnrollmentKeyRecord.parse(item))
    return { items: records.map(enrollmentKeyView), totalCount, next }
  })

/** The key cannot be read later. */
export async function create(caller: Caller, request: EnrollmentKeyCreation): Promise<CreatedEnrollmentKey> {
  const { organisationId } = caller
  const { name, type = 'Hypervisor', siteId, labels = {}, maxUses } = request
  const { requireApproval = false, nameTemplate = '{hostname}' } = request
  if (siteId !== undefined && !isId('site', siteId)) throw platformError('unknown_site')
  const createdAtMs = now()
  const expiresAtMs = expiryOf(request, createdAtMs)
  // Requires current rights, because the key outlives the caller's access token.
  const [, platform] = await reauthorize(caller, ['clusters:write'], [keys.platform()])
  const [id, secret] = [newId('ekey', createdAtMs), newSecret()]
  const settings = { name, type, siteId, labels, maxUses, requireApproval, nameTemplate }
  const times = { createdAtMs, expiresAtMs }
  const creator = { ...submitterOf(caller), tokenId: caller.tokenId }
  const record = { id, organisationId, hash: sha256(secret), ...settings, ...times, ...creator, used: 0 }
  const enrollmentKey = `${id}.${secret}`
  const response = {
    ...enrollmentKeyView(record),
    enrollmentKey,
    relayCommand: relayCommand(caller, platform, `PLAT_ENROLLMENT_KEY=${enrollmentKey}`),
  }
  await commit(caller, {
    writes: [
      orThrow(
        upsert(
          keys.enrollmentKeyCount(organisationId),
          { add: { count: 1 } },
          { count: { absentOrAtMost: enrollmentKeyLimit - 1 } },
        ),
        limitReachedError(enrollmentKeyLimit, 'enrollment keys in an organisation'),
      ),
      createItem(keys.enrollmentKey(id), { ...record, gsi1pk: keys.enrollmentKeysOf(organisationId) }),
      ...(siteId === undefined
        ? []
        : [orThrow(check(keys.site(organisationId, siteId), { pk: { present: true } }), 'unknown_site')]),
    ],
    response,
    audit: { action: 'enrollment_key.create', resource: id, detail: name },
  })
  return response
}

function expiryOf({ expiresAt }: EnrollmentKeyCreation, fromMs: number): number {
  const expiresAtMs = Date.parse(expiresAt)
  if (expiresAtMs > fromMs && expiresAtMs <= fromMs + maxEnrollmentKeyDays * 86_400_000) return expiresAtMs
  const message = `must be in the future and at most ${maxEnrollmentKeyDays} days ahead`
  throw validationFailedError([{ in: 'body', path: '/expiresAt', code: 'invalid_value', message }])
}

/** Keeps the record for seven days, because a relay that did not receive the response repeats its enrollment. */
export async function revoke(caller: Caller, keyId: string): Promise<void> {
  const { organisationId } = caller
  const itemKey = keys.enrollmentKey(keyId)
  const [, item] = await reauthorize(caller, ['clusters:write'], isId('ekey', keyId) ? [itemKey] : [])
  const record = ownRecord(item, organisationId)
  const failure = await commit(caller, {
    writes: [
      patch(
        itemKey,
        { set: { revokedAtMs: now(), ttl: repeatableUntil() }, remove: ['gsi1pk'] },
        { revokedAtMs: { absent: true } },
      ),
      upsert(keys.enrollmentKeyCount(organisationId), { add: { count: -1 } }),
    ],
    audit: { action: 'enrollment_key.delete', resource: keyId, detail: record.name },
  })
  if (failure !== undefined) throw platformError('enrollment_key_not_found')
}

function ownRecord(item: Item | undefined, organisationId: string): EnrollmentKeyRecord {
  const record = item && EnrollmentKeyRecord.parse(item)
  if (record?.organisationId !== organisationId || record.revokedAtMs !== undefined)
    throw platformError('enrollment_key_not_found')
  return record
}
