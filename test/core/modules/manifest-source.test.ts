import { manifestBytes } from '@platform/contract/manifest'
import { afterAll, expect, test, vi } from 'vitest'
import type { ServerReply } from '../../support/http-server.ts'
import { writtenManifest } from '../../support/module-registry.ts'
import { newModuleId } from '../support/modules.ts'
import { manifestErrors, resolve, resolveError, resolveErrorCode } from '../support/releases.ts'

const registry = await vi.hoisted(async () => {
  const { startModuleFixtures } = await import('../../support/module-registry.ts')
  return startModuleFixtures({ PLAT_ALLOW_UNVERIFIED_MODULES: 'true' })
})
afterAll(registry.close)

async function pushImage(options: Parameters<typeof registry.push>[1] = { manifest: false }) {
  const id = newModuleId()
  return { id, reference: (await registry.push(id, options)).reference }
}
const hostManifest = (document: unknown) => registry.page(JSON.stringify(document))
const redirect = (location: string) => registry.page(() => ({ status: 302, headers: { location } }))

test('reads the manifest of an unsigned image from its URL, even if the image has another one', async () => {
  const id = newModuleId()
  const manifestUrl = hostManifest(writtenManifest(id, '1.0.0', {}, { name: 'Elsewhere' }))
  for (const [tag, manifest] of [['a', false] as const, ['b', writtenManifest(id)] as const]) {
    const { reference } = await registry.push(id, { manifest, signer: false, tags: [tag] })
    const release = await resolve(reference, { manifestUrl })
    expect([release.manifest.metadata.name, release.isVerified]).toEqual(['Elsewhere', false])
    expect('verifiedBy' in release).toBe(false)
  }
})

test('requires the manifest of a signed image to be equal, except for order and spacing', async () => {
  const { id, reference } = await pushImage({})
  const { metadata, spec } = writtenManifest(id)
  const equalManifestUrl = registry.page(JSON.stringify({ spec, metadata }, null, 3))
  expect(await resolve(reference, { manifestUrl: equalManifestUrl })).toMatchObject({ isVerified: true })
  for (const change of [{ healthEndpoint: '/other' }, { navSlots: [] }]) {
    const manifestUrl = hostManifest(writtenManifest(id, '1.0.0', change))
    expect(await resolveErrorCode(reference, { manifestUrl })).toBe('manifest_mismatch')
  }
})

test('validates a hosted manifest', async () => {
  const { id, reference } = await pushImage()
  const errorsOf = (manifestUrl: string) => manifestErrors(reference, { manifestUrl })
  const invalidUrl = hostManifest(writtenManifest(id, '1.0.0', { healthEndpoint: 'health' }))
  expect(await errorsOf(invalidUrl)).toEqual(['manifest/spec/healthEndpoint invalid_format'])
  expect(await errorsOf(registry.page('<html>'))).toEqual(['manifest invalid_json'])
  expect(await errorsOf(registry.page(' '.repeat(manifestBytes + 5)))).toEqual(['manifest too_large'])
  const codeOf = (manifest: unknown) => resolveErrorCode(reference, { manifestUrl: hostManifest(manifest) })
  expect(await codeOf(writtenManifest(newModuleId()))).toBe('manifest_id_mismatch')
  expect(await codeOf(writtenManifest(id, '2.0.0'))).toBe('manifest_mismatch')
})

test('rejects an embedded manifest that is too large', async () => {
  const { reference } = await pushImage({ manifest: ' '.repeat(manifestBytes + 1) })
  expect(await manifestErrors(reference)).toEqual(['manifest too_large'])
})

test('follows up to three redirects, absolute and relative', async () => {
  const { id, reference } = await pushImage()
  const lastRedirect = redirect(new URL(hostManifest(writtenManifest(id))).pathname)
  const manifestUrl = redirect(redirect(`..${new URL(lastRedirect).pathname}`))
  expect(await resolve(reference, { manifestUrl })).toMatchObject({ moduleId: id })
  const { code, message } = await resolveError(reference, { manifestUrl: redirect(manifestUrl) })
  expect([code, message]).toEqual(['image_unreachable', expect.stringContaining('too many redirects')])
})

test.each([
  'http://127.0.0.1:9/module.json',
  'http://localhost:9/module.json',
  'https://169.254.169.254/module.json',
  'http://example.com/module.json',
  'https://me:secret@example.com/module.json',
  'file:///etc/passwd',
])('rejects the URL %s and redirects to it', async (url) => {
  const { reference } = await pushImage()
  for (const manifestUrl of [url, redirect(url)]) {
    const { code, message } = await resolveError(reference, { manifestUrl })
    expect(code).toBe('url_not_allowed')
    expect(message).not.toContain('secret')
  }
})

test.each<[string, ServerReply]>([
  ['status 404', { status: 404 }],
  ['status 500', { status: 500, body: '{}' }],
  ['a redirect without a location', { status: 302 }],
  ['a redirect to an invalid URL', { status: 301, headers: { location: 'http://[' } }],
])('reports %s as unreachable', async (_, response) => {
  const { reference } = await pushImage()
  expect(await resolveErrorCode(reference, { manifestUrl: registry.page(() => response) })).toBe('image_unreachable')
})

test.each([false, 'stranger'] as const)(
  'accepts the signer %s as unverified if the settings allow it',
  async (signer) => {
    const { id, reference } = await pushImage({ signer })
    expect(await resolve(reference)).toMatchObject({ moduleId: id, isVerified: false })
  },
)
