import { expect, test, vi } from 'vitest'
import { newId } from '@platform/core/id'
import { complete } from '@platform/core/platform/setup'
import { Page, publicPortal } from '../support/browser-session.ts'
import { posting, type Received, send } from '../support/event.ts'
import { logged } from '../support/output.ts'
import { bearer } from '../support/tokens.ts'
import { administrator, adminToken, started } from '../support/world.ts'
import { handler as auth } from '../../functions/auth.ts'
import { handler } from '../../functions/sites.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_LOG_LEVEL: 'debug' }))

test('the line of a request names who called, and not by what token', async () => {
  await started()
  const organisationId = newId('org')
  const headers = await bearer(['Viewer'], organisationId)
  const lines = await logged(() => send(handler, { target: '/api/v1/sites', headers }))
  expect(lines).toMatchObject([{ route: '/api/v1/sites', organisationId, userId: expect.stringMatching(/^user_/) }])
  expect(JSON.stringify(lines)).not.toContain(headers.authorization.split('.')[2])
})

test('neither an answer nor a log line tells the tokens that a browser keeps in cookies', async () => {
  await started()
  const { refreshToken } = await complete({ ...administrator, initialAdminToken: await adminToken() })
  const page = new Page(publicPortal)
  const answers: Received[] = []
  const secrets = new Set<string>()
  const take = (answer: Received) => {
    answers.push(answer)
    for (const value of page.cookies.values()) for (const part of value.split('.').slice(1)) secrets.add(part)
  }
  const lines = await logged(async () => {
    take(await page.post(auth, '/api/v1/auth/session', { refreshToken }))
    take(await page.send(auth, { target: '/api/v1/auth/me' }))
    take(await page.send(auth, posting('/api/v1/auth/session/refresh', '')))
    take(await page.send(auth, { target: '/api/v1/auth/me', headers: { 'sec-fetch-site': 'cross-site' } }))
    take(await page.send(auth, { method: 'DELETE', target: '/api/v1/auth/session' }))
  })
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 403, 204])
  expect([lines.length >= answers.length, secrets.size >= 6]).toEqual([true, true])
  const told = JSON.stringify([lines, answers.map(({ text, headers }) => [text, headers])])
  for (const secret of secrets) expect(told).not.toContain(secret)
})
