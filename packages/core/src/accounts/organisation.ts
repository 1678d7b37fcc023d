import type {
  Organisation,
  OrganisationCreation,
  OrganisationUpdate,
  OrganisationUsage,
} from '@platform/contract/organisation'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import { commit, outboxWrite } from '../outbox/commit.ts'
import { iso } from '../clock.ts'
import { platformError } from '../error.ts'
import { enqueueProjections } from '../aws/queues.ts'
import { activeJobsKeys, limitWrites, sumOfActiveJobs } from './active-jobs.ts'
import { reauthorize } from './current-rights.ts'
import { quotaOf, quotasOf, type Resource, resources } from './quota.ts'
import { unchangedCondition } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { paged, type PageQuery } from '../db/paging.ts'
import * as table from '../db/table.ts'
import { isId, newId } from '../id.ts'
import {
  insertWrite,
  nextSortTimeMs,
  type OffsetList,
  parseHead,
  readHead,
  readPage,
  retryOnConflict,
} from '../db/offset-list.ts'

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

const view = (item: table.Item): Organisation => {
  const { createdAtMs, ...record } = parseOrganisation(item)
  return { ...record, createdAt: iso(createdAtMs), quotas: quotasOf(item) }
}

export const list = (query: PageQuery) =>
  paged(['organisations'], query, async (page) => {
    const { items, ...rest } = await readPage(organisations, page)
    return { items: items.map(view), ...rest }
  })

export const create = (caller: Caller, request: OrganisationCreation): Promise<Organisation> =>
  retryOnConflict(() => tryCreate(caller, request))

async function tryCreate(caller: Caller, { name }: OrganisationCreation): Promise<Organisation | undefined> {
  const head = await readHead(organisations)
  const createdAtMs = nextSortTimeMs(head)
  const record = { id: newId('org', createdAtMs), name, isPlatform: false, createdAtMs }
  const nameWrite = table.create(keys.organisationName(name), { organisationId: record.id })
  const response = view({ ...record })
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

export const update = (caller: Caller, organisationId: string, change: OrganisationUpdate): Promise<Organisation> =>
  retryOnConflict(() => tryUpdate(caller, organisationId, change))

async function tryUpdate(
  caller: Caller,
  organisationId: string,
  change: OrganisationUpdate,
): Promise<Organisation | undefined> {
  if (!isId('org', organisationId)) throw platformError('organisation_not_found')
  const itemKeys = [keys.organisation(organisationId), ...activeJobsKeys(organisationId)]
  const [, item, ...activeJobs] = await reauthorize(caller, ['platform:admin'], itemKeys)
  if (item === undefined) throw platformError('organisation_not_found')
  const before = quotasOf(item)
  const quotas = { ...before, ...change.quotas }
  const changedResources = resources.filter((resource) => quotas[resource] !== before[resource])
  if (changedResources.length === 0) return view(item)
  const detail = changedResources.map((resource) => `quota of ${resource} ${quotas[resource] ?? 'default'}`).join(', ')
  const audit = { action: 'organisation.update', resource: organisationId, detail }
  const isOwn = organisationId === caller.organisationId
  const version = item['quotasVersion']
  const failure = await commit(
    { ...caller, organisationId },
    {
      writes: [
        table.patch(
          keys.organisation(organisationId),
          { set: { quotas }, add: { quotasVersion: 1 } },
          { quotasVersion: unchangedCondition(version) },
        ),
        ...(changedResources.includes('activeJobs')
          ? limitWrites(organisationId, activeJobs, quotas.activeJobs ?? null)
          : []),
        ...(isOwn ? [] : [outboxWrite(caller, { audit })]),
      ],
      audit,
    },
  )
  if (failure !== undefined) return undefined
  if (!isOwn) await enqueueProjections(caller.organisationId)
  return view({ ...item, quotas })
}

export async function readUsage({ organisationId }: Caller): Promise<OrganisationUsage> {
  const [organisation, clusters, users, webhooks, ...activeJobs] = await table.getConsistent([
    keys.organisation(organisationId),
    keys.clusterOffsets(organisationId),
    keys.userOffsets(organisationId),
    keys.webhookCount(organisationId),
    ...activeJobsKeys(organisationId),
  ])
  const usage = (resource: Resource, usedCount: number) => ({
    used: Math.max(0, usedCount),
    limit: quotaOf(organisation, resource),
  })
  return {
    clusters: usage('clusters', parseHead(clusters).total),
    users: usage('users', parseHead(users).total),
    webhooks: usage('webhooks', Number(webhooks?.['count'] ?? 0)),
    activeJobs: usage('activeJobs', sumOfActiveJobs(activeJobs)),
  }
}
