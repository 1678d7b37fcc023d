import { type SavedFilter, type SavedFilterCreation, savedFilterLimit } from '@platform/contract/preference'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { iso } from '../clock.ts'
import * as keys from '../db/keys.ts'
import * as table from '../db/table.ts'
import { limitReachedError, platformError } from '../error.ts'
import { isId, lowestIdAt, newId, timeMsOf } from '../id.ts'

/** The content of a filter is free-form, so it is stored as JSON text. */

const FilterRecord = z.object({ sk: z.string(), name: z.string(), context: z.string(), filter: z.string() })
const Filter = z.record(z.string(), z.unknown())

function view(item: table.Item): SavedFilter {
  const { sk: id, name, context, filter } = FilterRecord.parse(item)
  return { id, name, context, filter: Filter.parse(JSON.parse(filter)), createdAt: iso(timeMsOf(id)) }
}

export async function list({ organisationId, userId }: Caller): Promise<{ items: SavedFilter[] }> {
  const { pk } = keys.preferences(organisationId, userId)
  const items = await table.queryAll({ pk, from: lowestIdAt('filter', 0), isNewestFirst: true })
  return { items: items.map(view) }
}

export async function read({ organisationId, userId }: Caller, filterId: string): Promise<SavedFilter> {
  const key = keys.savedFilter(organisationId, userId, filterId)
  const item = isId('filter', filterId) ? await table.get(key) : undefined
  if (item === undefined) throw platformError('filter_not_found')
  return view(item)
}

export async function create(caller: Caller, { name, context, filter }: SavedFilterCreation): Promise<SavedFilter> {
  const { organisationId, userId } = caller
  const id = newId('filter')
  const response = { id, name, context, filter, createdAt: iso(timeMsOf(id)) }
  const belowLimit = { count: { absentOrAtMost: savedFilterLimit - 1 } }
  const countWrite = table.upsert(keys.filterCount(organisationId, userId), { add: { count: 1 } }, belowLimit)
  const record = { name, context, filter: JSON.stringify(filter) }
  await commit(caller, {
    writes: [
      table.orThrow(countWrite, limitReachedError(savedFilterLimit, 'saved filters of one user')),
      table.create(keys.savedFilter(organisationId, userId, id), record),
    ],
    response,
    audit: { action: 'preference.create_filter', resource: id, detail: name },
  })
  return response
}

export async function remove(caller: Caller, filterId: string): Promise<void> {
  const { organisationId, userId } = caller
  if (!isId('filter', filterId)) throw platformError('filter_not_found')
  const removeWrite = table.remove(keys.savedFilter(organisationId, userId, filterId), { pk: { present: true } })
  await commit(caller, {
    writes: [
      table.orThrow(removeWrite, 'filter_not_found'),
      table.upsert(keys.filterCount(organisationId, userId), { add: { count: -1 } }),
    ],
    audit: { action: 'preference.delete_filter', resource: filterId },
  })
}
