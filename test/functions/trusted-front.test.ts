import { afterEach, expect, test } from 'vitest'
import { config } from '@platform/core/config'
import { outboxPartitions } from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { sha256 } from '@platform/core/id'
import { parseRecord } from '@platform/core/outbox/record'
import { handler } from '../../functions/sites.ts'
import { jsonRequest, send } from '../support/request.ts'
import { newUser } from './users.ts'

const secret = 'a secret of the front'
const front = '198.51.100.9'
const client = '203.0.113.7'

afterEach(() => void Object.assign(config, { PLAT_FRONT_SECRET_SHA256: '', PLAT_FRONT_REQUIRED: 'false' }))

test.each([
  ['the secret', secret, `${client}, ${front}`, client],
  ['the secret, and entries of the client', secret, `192.0.2.66,  192.0.2.67,${client}, ${front}`, client],
  ['the secret, without a gateway that adds the front', secret, `192.0.2.66, ${client}`, client],
  ['the secret, a port', secret, `${client}:4711, ${front}`, client],
  ['the secret, IPv6 with a port', secret, `[2001:db8::7]:4711, ${front}`, '2001:db8::7'],
  ['the secret, IPv6', secret, `2001:db8::7, ${front}`, '2001:db8::7'],
  ['the secret, no address', secret, `${client}, unknown, ${front}`, front],
  ['the secret, only the front', secret, front, front],
  ['a forged secret', `${secret}x`, `${client}, ${front}`, front],
  ['a repeated secret', `${secret},${secret}`, `${client}, ${front}`, front],
  ['an empty secret', '', `${client}, ${front}`, front],
  ['no secret', undefined, `${client}, ${front}`, front],
])('with %s, the address of a caller is as recorded', async (_, sent, route, expected) => {
  for (const [setting, address] of [
    [sha256(secret), expected],
    ['', front],
  ] as const) {
    config.PLAT_FRONT_SECRET_SHA256 = setting
    const { organisationId, headers } = await newUser('OrgAdmin')
    const sentHeaders = {
      ...headers,
      'x-forwarded-for': route,
      ...(sent !== undefined && { 'x-plat-front-secret': sent }),
    }
    const request = { ...jsonRequest('/api/v1/sites', { name: 'x' }, sentHeaders), address: front }
    expect((await send(handler, request)).status).toBe(201)
    const pages = await Promise.all(outboxPartitions(organisationId).map((pk) => query({ pk })))
    const items = pages.flatMap((page) => page.items)
    expect(items.map(parseRecord).find(({ audit }) => audit?.action === 'site.create')?.address).toBe(address)
  }
})

test.each([
  ['from the front', secret, 200],
  ['with a forged secret', `${secret}x`, 404],
  ['without a secret', undefined, 404],
])('if the front is required, a request %s gets its status', async (_, sent, status) => {
  Object.assign(config, { PLAT_FRONT_SECRET_SHA256: sha256(secret), PLAT_FRONT_REQUIRED: 'true' })
  const { headers } = await newUser('Viewer')
  const sentHeaders = { ...headers, ...(sent !== undefined && { 'x-plat-front-secret': sent }) }
  expect((await send(handler, { target: '/api/v1/sites', headers: sentHeaders })).status).toBe(status)
})
