import { DashboardLayoutUpdate, type DashboardLayout } from '@platform/contract/preference'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { iso, now } from '../clock.ts'
import type { Condition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { get, orThrow, upsert } from '../db/table.ts'
import { validationFailedError } from '../error.ts'
import { newNonce } from '../id.ts'

const LayoutRecord = z.object({ layout: z.string(), revision: z.string(), updatedAtMs: z.number() })

const maxTags = 20

export interface VersionedLayout {
  layout: DashboardLayout
  etag: string
}

const etagOf = (revision: string): string => `"${revision}"`

export async function read({ organisationId, userId }: Caller): Promise<VersionedLayout | undefined> {
  const item = await get(keys.dashboardLayout(organisationId, userId))
  if (item === undefined) return undefined
  const { layout, revision, updatedAtMs } = LayoutRecord.parse(item)
  const { layout: widgets } = DashboardLayoutUpdate.parse({ layout: JSON.parse(layout) })
  return { layout: { layout: widgets, updatedAt: iso(updatedAtMs) }, etag: etagOf(revision) }
}

/**
 * Returns the new ETag. Throws `precondition_failed` if `ifMatch` does not match the stored layout, so that only one of
 * several concurrent updates of the same version succeeds.
 */
export async function save(caller: Caller, { layout }: DashboardLayoutUpdate, ifMatch?: string): Promise<string> {
  const { organisationId, userId } = caller
  const revision = newNonce()
  const set = { layout: JSON.stringify(layout), revision, updatedAtMs: now() }
  const write = upsert(keys.dashboardLayout(organisationId, userId), { set }, conditionOf(ifMatch))
  await commit(caller, {
    writes: [orThrow(write, 'precondition_failed')],
    audit: { action: 'preference.save_layout', resource: userId, detail: `${layout.length} widgets` },
  })
  return etagOf(revision)
}

/** `*` matches any stored layout. Weak ETags never match, because If-Match compares strongly (RFC 9110). */
function conditionOf(ifMatch: string | undefined): Condition {
  if (ifMatch === undefined) return {}
  if (ifMatch.trim() === '*') return { revision: { present: true } }
  const tags = ifMatch.split(',').map((tag) => /^(?:W\/)?"([\w-]*)"$/.exec(tag.trim()))
  if (tags.length > maxTags || tags.includes(null)) {
    throw validationFailedError([
      { in: 'header', path: '/if-match', code: 'invalid_format', message: 'must be * or an ETag from GET' },
    ])
  }
  return { revision: { oneOf: tags.map((tag) => (tag?.[0].startsWith('W/') ? '' : tag?.[1])) } }
}
