import { type Site, siteLimit } from '@platform/contract/site'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import { commit, readWithRights } from '../outbox/commit.ts'
import { iso, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import * as table from '../db/table.ts'
import { limitReachedError, platformError } from '../error.ts'
import { isId, newId } from '../id.ts'

const SiteRecord = z.object({ id: z.string(), name: z.string(), createdAtMs: z.number() })
type SiteRecord = z.infer<typeof SiteRecord>

const view = ({ id, name, createdAtMs }: SiteRecord): Site => ({ id, name, createdAt: iso(createdAtMs) })

export async function list({ organisationId }: Caller): Promise<{ items: Site[] }> {
  const { items } = await table.query({ pk: keys.site(organisationId, '').pk, isNewestFirst: true, limit: siteLimit })
  return { items: items.map((item) => view(SiteRecord.parse(item))) }
}

export async function create(caller: Caller, { name }: { name: string }): Promise<Site> {
  const { organisationId } = caller
  const record = { id: newId('site'), name, createdAtMs: now(), clusters: 0 }
  const response = view(record)
  // Each write adds one, so the count cannot skip the limit.
  const countWrite = table.upsert(
    keys.siteCount(organisationId),
    { add: { count: 1 } },
    { count: { isNot: siteLimit } },
  )
  await commit(caller, {
    writes: [
      table.orThrow(table.create(keys.siteName(organisationId, name), { siteId: record.id }), 'site_name_taken'),
      table.orThrow(countWrite, limitReachedError(siteLimit, 'sites in an organisation')),
      table.create(keys.site(organisationId, record.id), record),
    ],
    response,
    audit: { action: 'site.create', resource: record.id, detail: name },
  })
  return response
}

export async function remove(caller: Caller, siteId: string): Promise<void> {
  const { organisationId } = caller
  const [item] = isId('site', siteId) ? await readWithRights(caller, [keys.site(organisationId, siteId)]) : []
  if (item === undefined) throw platformError('site_not_found')
  const { name } = SiteRecord.parse(item)
  const failure = await commit(caller, {
    writes: [
      table.remove(keys.site(organisationId, siteId), { clusters: { is: 0 } }),
      table.remove(keys.siteName(organisationId, name), { siteId: { is: siteId } }),
      table.upsert(keys.siteCount(organisationId), { add: { count: -1 } }),
    ],
    audit: { action: 'site.delete', resource: siteId, detail: name },
  })
  // The failed condition returns no item if the site was removed; otherwise a cluster was moved into it.
  if (failure) throw platformError(failure.item === undefined ? 'site_not_found' : 'site_in_use')
}
