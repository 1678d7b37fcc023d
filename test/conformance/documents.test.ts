import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus } from './support/answer.ts'

test('publishes an OpenAPI 3.1 document with unique operation ids', async ({ anonymous, platform }) => {
  const {
    contract: { operations },
  } = platform
  const { openapi } = expectStatus(await anonymous.get('/api/v1/openapi.json'), 200)
  expect(openapi).toMatch(/^3\.1\./)
  const names = operations.map(({ operationId }) => operationId)
  expect(new Set(names).size).toBe(names.length)
})

test('serves a reference page that loads no external resource', async ({ anonymous }) => {
  const { text, headers } = await anonymous.get('/docs')
  expect(text).not.toMatch(
    /(?:<(?:script|img|iframe|link)[^>]*(?:src|href)=["']?|@import\s*["']?|url\(["']?)(?:https?:)?\/\//i,
  )
  expect(headers.get('content-security-policy') ?? '').toMatch(/default-src 'none'/)
})

test('serves the relay program', async ({ anonymous }) => {
  const { status, text } = await anonymous.get('/relay/relay.mjs')
  expect(status).toBe(200)
  expect(text.length).toBeGreaterThan(1000)
})

test('answers 304 to If-None-Match for static documents', async ({ anonymous }) => {
  for (const path of ['/api/v1/openapi.json', '/docs', '/relay/relay.mjs', '/schemas/module/v1.json']) {
    const { headers } = await anonymous.get(path)
    const etag = headers.get('etag') ?? ''
    expect(etag, path).not.toBe('')
    const again = await anonymous.get(path, { 'if-none-match': etag })
    expect([again.status, again.text], path).toEqual([304, ''])
    expect((await anonymous.get(path, { 'if-none-match': '"other"' })).status, path).toBe(200)
  }
})
