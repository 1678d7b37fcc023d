import { releaseMediaType } from '@platform/core/updates/release-document'
import { newestRelease } from '@platform/core/updates/release-feed'
import { digestOf } from '@platform/oci/digest'
import { mediaTypes } from '@platform/oci/types'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { expectError } from '../../support/fixtures.ts'
import { advanceClock } from '../../support/clock.ts'

const registry = await vi.hoisted(async () => {
  const { startServer } = await import('../../support/http-server.ts')
  type Respond = Parameters<typeof startServer>[0]
  const registry: { respond: Respond } = { respond: () => ({ status: 404 }) }
  const server = await startServer((request, outgoing) => registry.respond(request, outgoing))
  const PLAT_RELEASE_SOURCE = `${server.host}/platform/releases`
  Object.assign(process.env, { PLAT_REGISTRY_ALLOW: server.host, PLAT_RELEASE_SOURCE })
  return Object.assign(registry, { server })
})
afterAll(() => registry.server[Symbol.asyncDispose]())
const { requests } = registry.server
beforeEach(() => void (requests.length = 0))

const respond = (value: unknown, type = 'application/json', headers = {}) => ({
  status: 200,
  headers: { 'content-type': type, ...headers },
  body: typeof value === 'string' ? value : JSON.stringify(value),
})
const artifactType = releaseMediaType
const config = { mediaType: artifactType, digest: digestOf('{}'), size: 2 }
const manifest = { schemaVersion: 2, mediaType: mediaTypes.manifest, artifactType, config, layers: [] }
const tagsOf = (count: number, tagAt: (index: number) => string, headers = {}) => {
  const tags = Array.from({ length: count }, (_, index) => tagAt(index))
  return respond({ name: 'platform/releases', tags }, undefined, headers)
}
const isTagList = (path: string) => path.endsWith('/tags/list')
const isTaggedManifest = (path: string) => /\/manifests\/\d/.test(path)

test('reads the twenty newest of many unsigned releases', async () => {
  registry.respond = ({ url: { pathname } }) => {
    if (isTagList(pathname)) return tagsOf(10_000, (index) => `1.${index}.0`)
    if (!isTaggedManifest(pathname)) return { status: 404 }
    return respond({ ...manifest, annotations: { pathname } }, mediaTypes.manifest)
  }
  const { release, refused } = await newestRelease('0.1.0')
  expect(release).toBeUndefined()
  expect(refused.map(({ version }) => version)).toEqual(Array.from({ length: 20 }, (_, index) => `1.${9999 - index}.0`))
  expect(requests.filter(({ url }) => isTaggedManifest(url.pathname))).toHaveLength(20)
})

test('limits the pages of an endless tag list', async () => {
  let page = 0
  registry.respond = ({ url: { pathname } }) => {
    if (!isTagList(pathname)) return { status: 404 }
    const link = `</v2/platform/releases/tags/list?last=${page + 1}>; rel="next"`
    const start = page++ * 1000
    return tagsOf(1000, (index) => `0.0.${start + index}`, { link })
  }
  expect(await newestRelease('1.0.0')).toEqual({ refused: [] })
  expect(page).toBe(20)
})

test('rejects wrong digests and manifests that are too large or invalid', async () => {
  registry.respond = ({ url: { pathname } }) => {
    if (isTagList(pathname)) return tagsOf(3, (index) => `${index + 1}.0.0`)
    if (pathname.endsWith('/manifests/1.0.0')) {
      return respond(manifest, mediaTypes.manifest, { 'docker-content-digest': digestOf('another') })
    }
    if (pathname.endsWith('/manifests/2.0.0')) return respond(' '.repeat(5 * 2 ** 20), mediaTypes.manifest)
    if (pathname.endsWith('/manifests/3.0.0')) return respond('[[[['.repeat(1000), mediaTypes.manifest)
    return { status: 404 }
  }
  const { release, refused } = await newestRelease('0.1.0')
  expect(release).toBeUndefined()
  expect(refused.map(({ version }) => version)).toEqual(['3.0.0', '2.0.0', '1.0.0'])
  for (const { reason } of refused) expect(reason.length).toBeLessThanOrEqual(500)
})

test('stops after twenty seconds if the registry hangs', async () => {
  registry.respond = ({ url: { pathname } }) => {
    if (!isTagList(pathname)) return undefined
    advanceClock(19_700)
    return tagsOf(1, () => '1.0.0')
  }
  await expectError(newestRelease('0.1.0'), 'release_source_unreachable')
})

test('stops after twenty seconds if the registry is slow', async () => {
  registry.respond = ({ url: { pathname } }) => {
    if (isTagList(pathname)) return tagsOf(20, (index) => `1.${index}.0`)
    advanceClock(1500)
    if (!isTaggedManifest(pathname)) return { status: 404 }
    return respond({ ...manifest, annotations: { pathname } }, mediaTypes.manifest)
  }
  await expectError(newestRelease('0.1.0'), 'release_source_unreachable')
  expect(requests.length).toBeLessThanOrEqual(15)
})

test.each([401, 403, 429, 500, 302])('reports status %i as an unreachable registry', async (status) => {
  registry.respond = () => ({ status })
  await expectError(newestRelease('0.1.0'), 'release_source_unreachable')
})
