import { expect, test, vi } from 'vitest'
import { newId } from '@platform/core/id'
import { send } from '../support/event.ts'
import { logged } from '../support/output.ts'
import { bearer } from '../support/tokens.ts'
import { started } from '../support/world.ts'
import { handler } from '../../functions/sites.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_LOG_LEVEL: 'info' }))

test('the line of a request names who called, and not by what token', async () => {
  await started()
  const organisationId = newId('org')
  const headers = await bearer(['Viewer'], organisationId)
  const lines = await logged(() => send(handler, { target: '/api/v1/sites', headers }))
  expect(lines).toMatchObject([{ route: '/api/v1/sites', organisationId, userId: expect.stringMatching(/^user_/) }])
  expect(JSON.stringify(lines)).not.toContain(headers.authorization.split('.')[2])
})
