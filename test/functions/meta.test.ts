import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { docsPage } from '@platform/contract/docs'
import { eventNames } from '@platform/contract/event'
import { eventCatalog } from '@platform/contract/event-catalog'
import { manifestJsonSchema } from '@platform/contract/manifest'
import document from '@platform/contract/openapi.json' with { type: 'json' }
import { config } from '@platform/core/config'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { handler } from '../../functions/meta.ts'
import { bearer, bootstrapPlatform } from '../support/fixtures.ts'
import { captureLog } from '../support/log.ts'
import { type TestResponse, send } from '../support/request.ts'

vi.hoisted(() => Object.assign(process.env, { PLAT_VALIDATE_RESPONSES: '1' }))

const assetsDir = mkdtempSync(join(tmpdir(), 'assets-'))
beforeAll(async () => {
  config.PLAT_ASSETS_DIR = assetsDir
  await bootstrapPlatform()
})
afterAll(() => rmSync(assetsDir, { recursive: true }))

const read = async (target: string): Promise<TestResponse> =>
  send(handler, { target, headers: await bearer(['Viewer']) })

const json = 'application/json'
test.each([
  ['/api/v1/openapi.json', 'openapi.json', JSON.stringify(document, null, 2), json],
  ['/schemas/module/v1.json', 'module-schema.json', JSON.stringify(manifestJsonSchema()), json],
  ['/docs', 'docs.html', docsPage(document), 'text/html; charset=utf-8'],
  ['/relay/relay.mjs', 'relay.mjs', '// grüße\nexport {}\n', 'text/javascript; charset=utf-8'],
  ['/api/v1/events/catalog', 'event-catalog.json', JSON.stringify(eventCatalog()), json],
])('%s returns 500 while its file is missing, and the file once it is built', async (target, name, text, type) => {
  await captureLog(async () => expect((await read(target)).status).toBe(500))
  writeFileSync(join(assetsDir, name), text)
  const { status, headers, text: received } = await read(target)
  const visibility = target === '/api/v1/events/catalog' ? 'private' : 'public'
  expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, type, `${visibility}, max-age=60`])
  if (type === json) expect(JSON.parse(received)).toEqual(JSON.parse(text))
  else expect(received).toBe(text)
})

test('the event catalog lists every event', async () => {
  writeFileSync(join(assetsDir, 'event-catalog.json'), JSON.stringify(eventCatalog()))
  const { items } = (await read('/api/v1/events/catalog')).json
  expect(items.map(({ type }: { type: string }) => type)).toEqual(eventNames.map((name) => `platform.${name}`))
})

test('the policy of the reference page permits its own style only', async () => {
  writeFileSync(join(assetsDir, 'docs.html'), docsPage(document))
  const policy = (await read('/docs')).headers['content-security-policy']
  expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; img-src data:;/)
})

test('the published keys include the one that signs access tokens', async () => {
  const { status, headers, json: keySet } = await read('/.well-known/jwks.json')
  expect([status, headers['cache-control']]).toEqual([200, 'public, max-age=60'])
  const [head = ''] = (await bearer(['Viewer'])).authorization.split(' ')[1]?.split('.') ?? []
  const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString())
  expect(keySet.keys.map((key: { kid: string }) => key.kid)).toContain(kid)
})
