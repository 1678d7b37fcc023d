import { type Site } from '@platform/contract/site'
import * as z from 'zod'
import { type Caller } from './caller.ts'
import { iso, now } from './clock.ts'
import * as keys from './db/keys.ts'
import * as table from './db/table.ts'
import { fault } from './fault.ts'
import { isId, newId } from './id.ts'

const Row = z.object({ id: z.string(), name: z.string(), createdAtMs: z.number(), clusters: z.number().default(0) })

const view = ({ id, name, createdAtMs }: z.infer<typeof Row>): Site => ({ id, name, createdAt: iso(createdAtMs) })

/** The first thousand sites, newest first. One call. */
export async function list({ organisationId }: Caller): Promise<{ items: Site[] }> {
  const { items } = await table.query({ pk: keys.site(organisationId, '').pk, newestFirst: true, limit: 1000 })
  return { items: items.map((item) => view(Row.parse(item))) }
}

/** Creates a site; names are unique within the organisation. One call. */
export async function create({ organisationId }: Caller, { name }: { name: string }): Promise<Site> {
  const row = { id: newId('site'), name, createdAtMs: now(), clusters: 0 }
  const refusal = await table.transact([
    table.create(keys.siteName(organisationId, name), { siteId: row.id }),
    table.create(keys.site(organisationId, row.id), row),
  ])
  if (refusal) throw fault('site_name_taken')
  return view(row)
}

/** Removes a site that no cluster belongs to. Two calls. */
export async function remove({ organisationId }: Caller, siteId: string): Promise<void> {
  const item = isId('site', siteId) ? await table.get(keys.site(organisationId, siteId)) : undefined
  if (item === undefined) throw fault('site_not_found')
  const refusal = await table.transact([
    table.remove(keys.site(organisationId, siteId), { clusters: { is: 0 } }),
    table.remove(keys.siteName(organisationId, Row.parse(item).name), { siteId: { is: siteId } }),
  ])
  if (refusal) throw fault('site_in_use')
}
