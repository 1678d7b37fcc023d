import type { PlatformSettings, PlatformSettingsUpdate } from '@platform/contract/platform-settings'
import type { Caller } from '../caller.ts'
import { reauthorize } from '../accounts/current-rights.ts'
import * as keys from '../db/keys.ts'
import { unchangedCondition } from '../db/expression.ts'
import { orThrow, upsert } from '../db/table.ts'
import { commit } from '../outbox/commit.ts'
import { PlatformState, readState } from './state.ts'

const viewOf = ({ platformName = '', publicUrl = '', timezone = '' }: PlatformState): PlatformSettings => ({
  platformName,
  publicUrl,
  timezone,
})

export const read = async (): Promise<PlatformSettings> => viewOf(await readState())

export async function update(caller: Caller, { publicUrl }: PlatformSettingsUpdate): Promise<PlatformSettings> {
  const [, item] = await reauthorize(caller, ['platform:admin'], [keys.platform()])
  const state = PlatformState.parse(item ?? {})
  if (state.publicUrl === publicUrl) return viewOf(state)
  const formerUrl = state.publicUrl ?? 'none'
  await commit(caller, {
    writes: [
      orThrow(
        upsert(keys.platform(), { set: { publicUrl } }, { publicUrl: unchangedCondition(state.publicUrl) }),
        'conflict',
      ),
    ],
    audit: {
      action: 'platform.update_settings',
      resource: 'platform',
      detail: `publicUrl ${publicUrl}, before ${formerUrl}`,
    },
  })
  return viewOf({ ...state, publicUrl })
}
