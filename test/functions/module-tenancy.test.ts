import { expect, test } from 'vitest'
import { moduleErrors } from '@platform/contract/module'
import { now } from '@platform/core/clock'
import { handler as modules } from '../../functions/modules.ts'
import { newModuleId, putModule, releaseFor } from '../core/support/modules.ts'
import { send } from '../support/request.ts'
import { bearer, bootstrapPlatform } from '../support/fixtures.ts'

await bootstrapPlatform()

const said = 'The module crashed five times in ten minutes.\nTypeError: no cluster berlin-1 of org_secret'

test.each(['Viewer', 'OrgAdmin', 'PlatformAdmin'] as const)(
  'what a module has said when it failed is for those who install modules; a %s of any organisation hears what kind of failure it was',
  async (role) => {
    const id = newModuleId()
    const error = { code: 'PLAT-MOD-5008' as const, message: said, atMs: now() }
    await putModule(releaseFor(id), { state: 'Failed', error })
    const headers = await bearer([role])
    const one = await send(modules, { target: `/api/v1/modules/${id}`, headers })
    const all = await send(modules, { target: '/api/v1/modules', headers })
    const listed = all.json.items.find((item: { id: string }) => item.id === id)
    const message = role === 'PlatformAdmin' ? said : moduleErrors['PLAT-MOD-5008']
    for (const seen of [one.json, listed]) {
      expect(seen).toMatchObject({ state: 'Failed', lastError: { code: 'PLAT-MOD-5008', message } })
    }
  },
)
