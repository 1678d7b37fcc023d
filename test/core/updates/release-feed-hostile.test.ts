import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { newestRelease } from '@platform/core/updates/release-feed'
import { digestOf } from '@platform/oci/digest'
import { mediaTypes } from '@platform/oci/types'
import { releaseMediaType } from '@platform/core/updates/release-document'
import { advanceClock } from '../support/notifications.ts'
import { expectError } from '../../support/fixtures.ts'

/** A registry that answers as each test says. */
const registry = await vi.hoisted(async () => {
  const { startServer } = await import('../../support/http-server.ts')
  type Respond = Parameters<typeof startServer>[0]
  const registry: { respond: Respond } = { respond: () => ({ status: 404 }) }
  const server = await startServer((seen, outgoing) => registry.respond(seen, outgoing))
  Object.assign(process.env, {
    PLAT_REGISTRY_ALLOW: server.host,
    PLAT_RELEASE_SOURCE: `${server.host}/platform/releases`,
  })
  return Object.assign(registry, { server })
})
afterAll(() => registry.server[Symbol.asyncDispose]())
const { requests: seen } = registry.server
beforeEach(() => void (seen.length = 0))

const json = (value: unknown, type = 'application/json') => ({
  status: 200,
  headers: { 'content-type': type },
  body: typeof value === 'string' ? value : JSON.stringify(value),
})
const tags = (...names: string[]) => json({ name: 'platform/releases', tags: names })

const config = { mediaType: releaseMediaType, digest: digestOf('{}'), size: 2 }
const manifest = {
  schemaVersion: 2,
  mediaType: mediaTypes.manifest,
  artifactType: releaseMediaType,
  config,
  layers: [],
}

/** How often the registry was asked for manifests by tags. */
const asked = () => seen.filter(({ url }) => /\/manifests\/\d/.test(url.pathname)).length

test('of ten thousand releases that nobody has signed the twenty newest are looked at, and no more', async () => {
  const names = Array.from({ length: 10_000 }, (_, index) => `1.${index}.0`)
  registry.respond = ({ url: { pathname } }) => {
    if (pathname.endsWith('/tags/list')) return tags(...names)
    if (/\/manifests\/\d/.test(pathname)) return json({ ...manifest, annotations: { pathname } }, mediaTypes.manifest)
    return { status: 404 }
  }
  const { release, refused } = await newestRelease('0.1.0')
  expect(release).toBeUndefined()
  expect(refused.map(({ version }) => version)).toEqual(names.slice(-20).toReversed())
  expect(asked()).toBe(20)
})

test('a list of tags that has no end, or comes again and again, ends', async () => {
  let page = 0
  registry.respond = ({ url: { pathname } }) => {
    if (!pathname.endsWith('/tags/list')) return { status: 404 }
    const names = Array.from({ length: 1000 }, (_, index) => `0.0.${page * 1000 + index}`)
    const link = `</v2/platform/releases/tags/list?last=${++page}>; rel="next"`
    const { headers, ...answer } = tags(...names)
    return { ...answer, headers: { ...headers, link } }
  }
  expect(await newestRelease('1.0.0')).toEqual({ refused: [] })
  expect(page).toBe(20)
})

test('a registry that lies about digests, or has documents without end, has no releases', async () => {
  const text = JSON.stringify(manifest)
  registry.respond = ({ url: { pathname } }) => {
    if (pathname.endsWith('/tags/list')) return tags('1.0.0', '2.0.0', '3.0.0')
    if (pathname.endsWith('/manifests/1.0.0')) {
      const headers = { 'content-type': mediaTypes.manifest, 'docker-content-digest': digestOf('another') }
      return { status: 200, headers, body: text }
    }
    if (pathname.endsWith('/manifests/2.0.0')) return json(' '.repeat(5 * 2 ** 20), mediaTypes.manifest)
    if (pathname.endsWith('/manifests/3.0.0')) return json('[[[['.repeat(1000), mediaTypes.manifest)
    return { status: 404 }
  }
  const { release, refused } = await newestRelease('0.1.0')
  expect(release).toBeUndefined()
  expect(refused.map(({ version }) => version)).toEqual(['3.0.0', '2.0.0', '1.0.0'])
  for (const { reason } of refused) expect(reason.length).toBeLessThanOrEqual(500)
})

test('one that does not answer any more is given up when its twenty seconds are over', async () => {
  registry.respond = ({ url: { pathname } }) => {
    if (!pathname.endsWith('/tags/list')) return undefined
    advanceClock(19_700)
    return tags('1.0.0')
  }
  const startedAtMs = performance.now()
  await expectError(newestRelease('0.1.0'), 'release_source_unreachable')
  expect(performance.now() - startedAtMs).toBeLessThan(5000)
})

test('twenty seconds are all that a slow one gets, however many releases it has', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `1.${index}.0`)
  registry.respond = ({ url: { pathname } }) => {
    if (pathname.endsWith('/tags/list')) return tags(...names)
    advanceClock(1500)
    return /\/manifests\/\d/.test(pathname)
      ? json({ ...manifest, annotations: { pathname } }, mediaTypes.manifest)
      : { status: 404 }
  }
  await expectError(newestRelease('0.1.0'), 'release_source_unreachable')
  expect(seen.length).toBeLessThanOrEqual(15)
})

test.each([401, 403, 429, 500, 302])('one that answers %i has no releases to be read', async (status) => {
  registry.respond = () => ({ status })
  await expectError(newestRelease('0.1.0'), 'release_source_unreachable')
})
