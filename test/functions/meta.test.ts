import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { docsPage } from '@platform/contract/docs'
import { manifestJsonSchema } from '@platform/contract/manifest'
import document from '@platform/contract/openapi.json' with { type: 'json' }
import { type Received, send } from '../support/event.ts'
import { logged } from '../support/output.ts'
import { bearer } from '../support/tokens.ts'
import { started } from '../support/world.ts'
import { handler } from '../../functions/meta.ts'

const assetsDir = await vi.hoisted(async () => {
  const { mkdtempSync } = await import('node:fs')
  const { tmpdir } = await import('node:os')
  const folder = mkdtempSync(`${tmpdir()}/assets-`)
  Object.assign(process.env, { PLAT_CHECK_RESPONSES: '1', PLAT_ASSETS_DIR: folder })
  return folder
})
afterAll(() => rmSync(assetsDir, { recursive: true }))

const read = (target: string, headers: Record<string, string> = {}): Promise<Received> =>
  send(handler, { target, headers })
const put = (name: string, text: string): void => writeFileSync(join(assetsDir, name), text)

const programs = [
  ['/api/v1/openapi.json', 'openapi.json', JSON.stringify(document, null, 2), 'application/json'],
  ['/docs', 'docs.html', docsPage(document), 'text/html; charset=utf-8'],
  ['/relay/relay.mjs', 'relay.mjs', '// grüße\nexport {}\n', 'text/javascript; charset=utf-8'],
] as const

test.each(programs)(
  '%s is a 500 while it is missing, and is there as soon as it has been built',
  async (target, name, text) => {
    await logged(async () => expect((await read(target)).status).toBe(500))
    put(name, text)
    expect((await read(target)).status).toBe(200)
  },
)

test.each(programs)('%s is served with its type, kept briefly and not sent twice', async (target, name, text, type) => {
  put(name, text)
  const { status, headers, text: received } = await read(target)
  expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, type, 'public, max-age=60'])
  expect(type === 'application/json' ? JSON.parse(received) : received).toEqual(
    type === 'application/json' ? document : text,
  )
  const again = await read(target, { 'If-None-Match': headers['etag'] ?? '' })
  expect(again).toMatchObject({ status: 304, text: '' })
})

test('the reference page may use its own style and nothing else', async () => {
  put('docs.html', docsPage(document))
  const policy = (await read('/docs')).headers['content-security-policy']
  expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; img-src data:;/)
})

test('the schema of the manifest is served as it was built, kept briefly and not sent twice', async () => {
  const target = '/schemas/module/v1.json'
  await logged(async () => expect((await read(target)).status).toBe(500))
  put('module-schema.json', JSON.stringify(manifestJsonSchema()))
  const { status, headers, json } = await read(target)
  expect([status, headers['content-type'], headers['cache-control']]).toEqual([
    200,
    'application/json',
    'public, max-age=60',
  ])
  expect(json).toEqual(manifestJsonSchema())
  expect((await read(target, { 'If-None-Match': headers['etag'] ?? '' })).status).toBe(304)
})

test('the public keys verify what the platform signs', async () => {
  await started()
  const { status, headers, json } = await read('/.well-known/jwks.json')
  expect([status, headers['cache-control']]).toEqual([200, 'public, max-age=60'])
  const [head = ''] = (await bearer(['Viewer'])).authorization.split(' ')[1]?.split('.') ?? []
  const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString())
  expect(json.keys.map((key: { kid: string }) => key.kid)).toContain(kid)
})
