import * as keys from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { type OutboxRecord, parseRecord } from '@platform/core/outbox/record'

/** What has happened in an organisation whose books nobody keeps, oldest first. */
export async function recordsOf(organisationId: string): Promise<OutboxRecord[]> {
  const { items } = await query({ pk: keys.outbox(organisationId, '').pk })
  return items.map(parseRecord)
}

/** How often something was told of. */
export const timesTold = async (organisationId: string, ...names: string[]): Promise<number> =>
  (await recordsOf(organisationId)).flatMap(({ events }) => events).filter(({ name }) => names.includes(name)).length
