import { afterAll, describe, expect, test, vi } from 'vitest'
import { manifestBytes } from '@platform/contract/manifest'
import { type Reply } from '../../support/http-server.ts'
import { writtenManifest } from '../../support/module-registry.ts'
import { newModuleId } from '../support/modules.ts'
import { codeOf, detailsOf, refusal, resolve } from '../support/releases.ts'

const world = await vi.hoisted(async () => {
  const { startModuleWorld } = await import('../support/module-hoist.ts')
  return startModuleWorld({ PLAT_ALLOW_UNVERIFIED_MODULES: 'true' })
})
afterAll(world.close)

const redirect = (location: string) => (): Reply => ({ status: 302, headers: { location } })

describe('an address of a manifest', () => {
  test('gives the manifest of an image that has none, or another one and no signature', async () => {
    const id = newModuleId()
    const manifestUrl = world.page(JSON.stringify(writtenManifest(id, '1.0.0', {}, { name: 'Elsewhere' })))
    for (const manifest of [false, writtenManifest(id)]) {
      const { reference } = await world.push(id, { manifest, signer: false, tag: `t${String(manifest === false)}` })
      const release = await resolve(reference, { manifestUrl })
      expect([release.manifest.metadata.name, release.isVerified]).toEqual(['Elsewhere', false])
      expect('verifiedBy' in release).toBe(false)
    }
  })

  test('must say the same as a signed image, in whatever order and spacing', async () => {
    const id = newModuleId()
    const { reference } = await world.push(id)
    const { metadata, spec } = writtenManifest(id)
    const same = world.page(JSON.stringify({ spec, metadata }, null, 3))
    expect(await resolve(reference, { manifestUrl: same })).toMatchObject({ isVerified: true })
    const other = world.page(JSON.stringify(writtenManifest(id, '1.0.0', { healthEndpoint: '/other' })))
    expect(await codeOf(reference, { manifestUrl: other })).toBe('manifest_mismatch')
    const sameOnceRead = world.page(JSON.stringify(writtenManifest(id, '1.0.0', { navSlots: [] })))
    expect(await codeOf(reference, { manifestUrl: sameOnceRead })).toBe('manifest_mismatch')
  })

  test('is judged like one in the image', async () => {
    const id = newModuleId()
    const { reference } = await world.push(id, { manifest: false })
    const wrong = world.page(JSON.stringify(writtenManifest(id, '1.0.0', { healthEndpoint: 'health' })))
    expect(await detailsOf(reference, { manifestUrl: wrong })).toEqual(['manifest/spec/healthEndpoint invalid_format'])
    expect(await detailsOf(reference, { manifestUrl: world.page('<html>') })).toEqual(['manifest invalid_json'])
    const long = world.page(' '.repeat(manifestBytes + 5))
    expect(await detailsOf(reference, { manifestUrl: long })).toEqual(['manifest too_large'])
    const stranger = world.page(JSON.stringify(writtenManifest(newModuleId())))
    expect(await codeOf(reference, { manifestUrl: stranger })).toBe('manifest_id_mismatch')
    const newer = world.page(JSON.stringify(writtenManifest(id, '2.0.0')))
    expect(await codeOf(reference, { manifestUrl: newer })).toBe('manifest_mismatch')
  })

  test('may lead on three times, by full addresses and by relative ones', async () => {
    const id = newModuleId()
    const { reference } = await world.push(id, { manifest: false })
    const end = world.page(JSON.stringify(writtenManifest(id)))
    const second = world.page(redirect(new URL(end).pathname))
    const first = world.page(redirect(`..${new URL(second).pathname}`))
    const manifestUrl = world.page(redirect(first))
    expect(await resolve(reference, { manifestUrl })).toMatchObject({ moduleId: id })
    const { code, message } = await refusal(reference, { manifestUrl: world.page(redirect(manifestUrl)) })
    expect([code, message]).toEqual(['image_unreachable', expect.stringContaining('without an end')])
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
    const { reference } = await world.push(id, { manifest: false })
    for (const manifestUrl of [address, world.page(redirect(address))]) {
      const { code, message } = await refusal(reference, { manifestUrl })
      expect(code).toBe('url_not_allowed')
      expect(message).not.toContain('secret')
    }
  })

  test.each<[string, () => Reply | undefined]>([
    ['there is nothing', () => ({ status: 404 })],
    ['it fails', () => ({ status: 500, body: '{}' })],
    ['it leads nowhere', () => ({ status: 302 })],
    ['it leads to what is no address', () => ({ status: 301, headers: { location: 'http://[' } })],
  ])('of which nothing comes is out of reach: %s', async (_, answer) => {
    const { reference } = await world.push(newModuleId(), { manifest: false })
    expect(await codeOf(reference, { manifestUrl: world.page(answer) })).toBe('image_unreachable')
  })
})

test('where the settings allow it, an image that nobody has signed is a release that is not verified', async () => {
  const id = newModuleId()
  for (const signer of [false, 'stranger'] as const) {
    const { reference } = await world.push(id, { signer, tag: `s-${signer}` })
    expect(await resolve(reference)).toMatchObject({ moduleId: id, isVerified: false })
  }
})

test('a manifest in an image that is too long is refused as such', async () => {
  const { reference } = await world.push(newModuleId(), { manifest: ' '.repeat(manifestBytes + 1) })
  expect(await detailsOf(reference)).toEqual(['manifest too_large'])
})
