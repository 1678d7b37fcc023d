import assert from 'node:assert/strict'
import { answered } from './support/answer.ts'
import type { Journeys } from './support/platform.ts'

export const contract: Journeys = {
  'the OpenAPI 3.1 document is public, and names every operation once': async ({
    anonymous,
    contract: { operations },
  }) => {
    const { openapi } = answered(await anonymous.get('/api/v1/openapi.json'), 200)
    assert.match(openapi, /^3\.1\./)
    const names = operations.map(({ operationId }) => operationId)
    assert.equal(new Set(names).size, names.length)
  },

  'the reference page works offline: it loads nothing, and its policy lets it load nothing': async ({ anonymous }) => {
    const { text, headers } = await anonymous.get('/docs')
    assert.doesNotMatch(
      text,
      /(?:<(?:script|img|iframe|link)[^>]*(?:src|href)=["']?|@import\s*["']?|url\(["']?)(?:https?:)?\/\//i,
    )
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/)
  },

  'the relay program that relay commands fetch is served': async ({ anonymous }) => {
    const { status, text } = await anonymous.get('/relay/relay.mjs')
    assert.equal(status, 200)
    assert.ok(text.length > 1000)
  },

  'what seldom changes is sent once to whoever keeps it': async ({ anonymous }) => {
    for (const path of ['/api/v1/openapi.json', '/docs', '/relay/relay.mjs', '/schemas/module/v1.json']) {
      const { headers } = await anonymous.get(path)
      const etag = headers.get('etag')
      assert.ok(etag !== null, path)
      const again = await anonymous.get(path, { 'if-none-match': etag })
      assert.deepEqual([again.status, again.text], [304, ''], path)
      assert.equal((await anonymous.get(path, { 'if-none-match': '"other"' })).status, 200, path)
    }
  },
}
