import { afterAll, describe, expect, test, vi } from 'vitest'
import { manifestBytes } from '@platform/contract/manifest'
import { type ServerReply } from '../../support/http-server.ts'
import { writtenManifest } from '../../support/module-registry.ts'
import { newModuleId } from '../support/modules.ts'
import { resolveErrorCode, manifestErrors, resolveError, resolve } from '../support/releases.ts'

const registry = await vi.hoisted(async () => {
  const { startModuleFixtures: startModuleWorld } = await import('../support/module-registry.ts')
  return startModuleWorld({ PLAT_ALLOW_UNVERIFIED_MODULES: 'true' })
})
afterAll(registry.close)

const redirect = (location: string) => (): ServerReply => ({ status: 302, headers: { location } })

describe('an address of a manifest', () => {
  test('gives the manifest of an image that has none, or another one and no signature', async () => {
    const id = newModuleId()
    const manifestUrl = registry.page(JSON.stringify(writtenManifest(id, '1.0.0', {}, { name: 'Elsewhere' })))
    for (const manifest of [false, writtenManifest(id)]) {
      const { reference } = await registry.push(id, { manifest, signer: false, tag: `t${String(manifest === false)}` })
      const release = await resolve(reference, { manifestUrl })
      expect([release.manifest.metadata.name, release.isVerified]).toEqual(['Elsewhere', false])
      expect('verifiedBy' in release).toBe(false)
    }
  })

  test('must say the same as a signed image, in whatever order and spacing', async () => {
    const id = newModuleId()
    const { reference } = await registry.push(id)
    const { metadata, spec } = writtenManifest(id)
    const same = registry.page(JSON.stringify({ spec, metadata }, null, 3))
    expect(await resolve(reference, { manifestUrl: same })).toMatchObject({ isVerified: true })
    const other = registry.page(JSON.stringify(writtenManifest(id, '1.0.0', { healthEndpoint: '/other' })))
    expect(await resolveErrorCode(reference, { manifestUrl: other })).toBe('manifest_mismatch')
    const sameOnceRead = registry.page(JSON.stringify(writtenManifest(id, '1.0.0', { navSlots: [] })))
    expect(await resolveErrorCode(reference, { manifestUrl: sameOnceRead })).toBe('manifest_mismatch')
  })

  test('is judged like one in the image', async () => {
    const id = newModuleId()
    const { reference } = await registry.push(id, { manifest: false })
    const wrong = registry.page(JSON.stringify(writtenManifest(id, '1.0.0', { healthEndpoint: 'health' })))
    expect(await manifestErrors(reference, { manifestUrl: wrong })).toEqual([
      'manifest/spec/healthEndpoint invalid_format',
    ])
    expect(await manifestErrors(reference, { manifestUrl: registry.page('<html>') })).toEqual(['manifest invalid_json'])
    const long = registry.page(' '.repeat(manifestBytes + 5))
    expect(await manifestErrors(reference, { manifestUrl: long })).toEqual(['manifest too_large'])
    const stranger = registry.page(JSON.stringify(writtenManifest(newModuleId())))
    expect(await resolveErrorCode(reference, { manifestUrl: stranger })).toBe('manifest_id_mismatch')
    const newer = registry.page(JSON.stringify(writtenManifest(id, '2.0.0')))
    expect(await resolveErrorCode(reference, { manifestUrl: newer })).toBe('manifest_mismatch')
  })

  test('may lead on three times, by full addresses and by relative ones', async () => {
    const id = newModuleId()
    const { reference } = await registry.push(id, { manifest: false })
    const end = registry.page(JSON.stringify(writtenManifest(id)))
    const second = registry.page(redirect(new URL(end).pathname))
    const first = registry.page(redirect(`..${new URL(second).pathname}`))
    const manifestUrl = registry.page(redirect(first))
    expect(await resolve(reference, { manifestUrl })).toMatchObject({ moduleId: id })
    const { code, message } = await resolveError(reference, { manifestUrl: registry.page(redirect(manifestUrl)) })
    expect([code, message]).toEqual(['image_unreachable', expect.stringContaining('too many redirects')])
  })

  test.each([
    ['a private address', 'http://127.0.0.1:9/module.json'],
    ['this machine by name', 'http://localhost:9/module.json'],
    ['metadata of a cloud', 'https://169.254.169.254/module.json'],
    ['the network without https', 'http://example.com/module.json'],
    ['a password', 'https://me:secret@example.com/module.json'],
    ['a file', 'file:///etc/passwd'],
  ])('is refused where it is, or leads to, what the platform may not call: %s', async (_, address) => {
    const id = newModuleId()
    const { reference } = await registry.push(id, { manifest: false })
    for (const manifestUrl of [address, registry.page(redirect(address))]) {
      const { code, message } = await resolveError(reference, { manifestUrl })
      expect(code).toBe('url_not_allowed')
      expect(message).not.toContain('secret')
    }
  })

  test.each<[string, () => ServerReply | undefined]>([
    ['there is nothing', () => ({ status: 404 })],
    ['it fails', () => ({ status: 500, body: '{}' })],
    ['it leads nowhere', () => ({ status: 302 })],
    ['it leads to what is no address', () => ({ status: 301, headers: { location: 'http://[' } })],
  ])('of which nothing comes is out of reach: %s', async (_, answer) => {
    const { reference } = await registry.push(newModuleId(), { manifest: false })
    expect(await resolveErrorCode(reference, { manifestUrl: registry.page(answer) })).toBe('image_unreachable')
  })
})

test('where the settings allow it, an image that nobody has signed is a release that is not verified', async () => {
  const id = newModuleId()
  for (const signer of [false, 'stranger'] as const) {
    const { reference } = await registry.push(id, { signer, tag: `s-${signer}` })
    expect(await resolve(reference)).toMatchObject({ moduleId: id, isVerified: false })
  }
})

test('a manifest in an image that is too long is refused as such', async () => {
  const { reference } = await registry.push(newModuleId(), { manifest: ' '.repeat(manifestBytes + 1) })
  expect(await manifestErrors(reference)).toEqual(['manifest too_large'])
})
