import type { OrganisationSettings, OrganisationSettingsUpdate } from '@platform/contract/organisation'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, orThrow, patch } from '../db/table.ts'
import { commit } from '../outbox/commit.ts'
import { reauthorize } from './current-rights.ts'

/** Stored in the organisation's record. */
const StoredSettings = z.object({
  maxTokenLifetimeDays: z.number().nullable().default(null),
  defaultTokenLifetimeDays: z.number().nullable().default(365),
  jobRetentionDays: z.number().default(90),
})

export const parseSettings = (organisation: Item | undefined): OrganisationSettings =>
  StoredSettings.parse(organisation ?? {})

export const read = async ({ organisationId }: Caller): Promise<OrganisationSettings> =>
  parseSettings(await get(keys.organisation(organisationId)))

export async function update(caller: Caller, change: OrganisationSettingsUpdate): Promise<OrganisationSettings> {
  const key = keys.organisation(caller.organisationId)
  const [, item] = await reauthorize(caller, ['users:admin'], [key])
  const settings = parseSettings({ ...item, ...change })
  const changes = Object.entries(change).map(([name, value]) => `${name} ${value}`)
  if (changes.length === 0) return settings
  await commit(caller, {
    writes: [orThrow(patch(key, { set: { ...change } }), 'conflict')],
    audit: { action: 'organisation.update_settings', resource: caller.organisationId, detail: changes.join(', ') },
  })
  return settings
}
