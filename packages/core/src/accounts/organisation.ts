import { type Organisation, type OrganisationCreation } from '@platform/contract/organisation'
import * as z from 'zod'
import { type Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { iso } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { paged, type PageQuery } from '../db/paging.ts'
import * as table from '../db/table.ts'
import { newId } from '../id.ts'
import { insertWrite, nextSortTimeMs, type OffsetList, readHead, readPage, retryOnConflict } from '../db/offset-list.ts'

const OrganisationRecord = z.object({
  id: z.string(),
  name: z.string(),
  isPlatform: z.boolean(),
  createdAtMs: z.number(),
})

export const organisations: OffsetList = {
  head: keys.organisationOffsets(),
  pk: keys.organisation('').pk,
  prefix: 'org',
}

export const parseOrganisation = (item: table.Item): z.infer<typeof OrganisationRecord> =>
  OrganisationRecord.parse(item)

const view = ({ createdAtMs, ...record }: z.infer<typeof OrganisationRecord>): Organisation => ({
  ...record,
  createdAt: iso(createdAtMs),
})

/** The oldest organisation operates the platform. Returns undefined until setup is complete. */
export async function platformOrganisationId(): Promise<string | undefined> {
  const { items } = await table.query({ pk: organisations.pk, limit: 1 })
  const oldest = items.map(parseOrganisation)[0]
  return oldest?.isPlatform === true ? oldest.id : undefined
}

export const list = (query: PageQuery) =>
  paged(['organisations'], query, async (page) => {
    const { items, ...rest } = await readPage(organisations, page)
    return { items: items.map((item) => view(parseOrganisation(item))), ...rest }
  })

export const create = (caller: Caller, request: OrganisationCreation): Promise<Organisation> =>
  retryOnConflict(() => tryCreate(caller, request))

async function tryCreate(caller: Caller, { name }: OrganisationCreation): Promise<Organisation | undefined> {
  const head = await readHead(organisations)
  const createdAtMs = nextSortTimeMs(head)
  const record = { id: newId('org', createdAtMs), name, isPlatform: false, createdAtMs }
  const nameWrite = table.create(keys.organisationName(name), { organisationId: record.id })
  const response = view(record)
  const failure = await commit(caller, {
    writes: [
      table.orThrow(nameWrite, 'organisation_name_taken'),
      insertWrite(organisations, head, createdAtMs),
      table.create(keys.organisation(record.id), record),
    ],
    response,
    audit: { action: 'organisation.create', resource: record.id, detail: name },
  })
  return failure === undefined ? response : undefined
}
