import { afterAll, describe, expect, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { digestOf } from '@platform/oci/digest'
import { signImage } from '@platform/oci/signature/sign'
import { type Index, mediaTypes } from '@platform/oci/types'
import { thisPlatform } from '@platform/oci/image'
import { registryClientFor } from '@platform/core/modules/registries'
import { moduleLabels, writtenManifest } from '../../support/module-registry.ts'
import { newModuleId } from '../support/modules.ts'
import { resolveErrorCode, resolveError, resolve } from '../support/releases.ts'

const registry = await vi.hoisted(async () => (await import('../support/module-registry.ts')).startModuleFixtures())
afterAll(registry.close)

describe('an image that is a module', () => {
  test('is a release: named by digest, with its manifest and who vouches for it', async () => {
    const id = newModuleId()
    const { reference, repository, digest } = await registry.push(id)
    expect(await resolve(reference)).toEqual({
      moduleId: id,
      version: '1.0.0',
      repository,
      digest,
      manifest: expect.objectContaining({ metadata: writtenManifest(id).metadata }),
      isVerified: true,
      verifiedBy: 'tests',
    })
    expect(await resolve(`${repository}@${digest}`, { id, version: '1.0.0' })).toMatchObject({ digest })
  })

  test('may hold its manifest where it works, but the one at the root counts', async () => {
    const id = newModuleId()
    const inFolder = {
      path: '/app/module.json',
      content: JSON.stringify(writtenManifest(id, '1.0.0', {}, { name: 'Folder' })),
    }
    const wish = { config: { WorkingDir: '/app' }, files: [inFolder] }
    const only = await registry.push(id, { ...wish, manifest: false, tag: 'only' })
    expect((await resolve(only.reference)).manifest.metadata.name).toBe('Folder')
    const both = await registry.push(id, { ...wish, tag: 'both' })
    expect((await resolve(both.reference)).manifest.metadata.name).toBe(`Module ${id}`)
    const elsewhere = await registry.push(id, { files: [inFolder], manifest: false, tag: 'elsewhere' })
    const { code, message } = await resolveError(elsewhere.reference)
    expect([code, message]).toEqual(['image_not_a_module', expect.stringContaining('module.json')])
  })

  test.each([
    ['no labels at all', {}],
    ['no label that says so', { 'org.platform.module': undefined }],
    ['a label that says no', { 'org.platform.module': 'false' }],
    ['no id', { 'org.platform.module.id': undefined }],
    ['no version', { 'org.platform.module.version': undefined }],
  ])('has its labels: with %s it is none', async (_, change) => {
    const id = newModuleId()
    const all = { ...moduleLabels(id), ...change }
    const named = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const labels = Object.keys(change).length === 0 ? {} : Object.fromEntries(named)
    const { reference } = await registry.push(id, { labels })
    expect(await resolveErrorCode(reference)).toBe('image_not_a_module')
  })

  test('is what it is called: by its labels, by its manifest, and by whoever asks for it', async () => {
    const [id, other] = [newModuleId(), newModuleId()]
    const labelled = await registry.push(id, { labels: moduleLabels(other), tag: 'a' })
    expect(await resolveErrorCode(labelled.reference)).toBe('manifest_id_mismatch')
    const right = await registry.push(id, { tag: 'b' })
    expect(await resolveErrorCode(right.reference, { id: other })).toBe('manifest_id_mismatch')
    const older = await registry.push(id, { labels: moduleLabels(id, '0.9.0'), tag: 'c' })
    expect(await resolveErrorCode(older.reference)).toBe('manifest_mismatch')
    expect(await resolveErrorCode(right.reference, { id, version: '1.0.1' })).toBe('manifest_mismatch')
  })

  test.each([
    '>=0.1.0 <1.0.0',
    '[0.1.0,1.0.0)',
    '^0.3.0',
    '*',
    '0.3.0',
    '[0.3.0,0.3.0]',
    '(0.2.9,)',
    '(,1.0.0)',
    '~0.3',
  ])('runs where the SDK is in its range: %s', async (sdkVersion) => {
    const id = newModuleId()
    const { reference } = await registry.push(id, { manifest: writtenManifest(id, '1.0.0', { sdkVersion }) })
    expect(await resolve(reference)).toMatchObject({ moduleId: id })
  })

  test.each(['^1.0.0', '[1.0.0,2.0.0)', '[0.1.0,0.3.0)', '(0.3.0,1.0.0)', '<0.3.0', '0.2.9 || >=0.4.0'])(
    'is refused where the SDK is not: %s',
    async (sdkVersion) => {
      const id = newModuleId()
      const { reference } = await registry.push(id, { manifest: writtenManifest(id, '1.0.0', { sdkVersion }) })
      const { code, message } = await resolveError(reference)
      expect([code, message]).toEqual(['sdk_incompatible', expect.stringContaining(sdkVersion)])
    },
  )
})

describe('a signature', () => {
  test.each(['unsigned', 'stranger', 'scoped'] as const)(
    'is asked for: %s is refused, with the reason',
    async (kind) => {
      const id = newModuleId()
      const { reference, digest } = await registry.push(id, { signer: kind === 'unsigned' ? false : kind })
      const { code, message } = await resolveError(reference)
      const reason = { unsigned: 'No signature', stranger: 'no trusted key', scoped: 'team, which is not trusted for' }[
        kind
      ]
      expect([code, message]).toEqual(['module_signature_unverified', expect.stringContaining(reason)])
      expect(message).toContain(digest)
    },
  )

  test('of a key for some repositories counts there', async () => {
    const id = newModuleId()
    const { reference } = await registry.push(id, { signer: 'scoped', repository: `team/${id}` })
    expect(await resolve(reference)).toMatchObject({ isVerified: true, verifiedBy: 'team' })
  })

  test('in the older layout counts as well', async () => {
    const id = newModuleId()
    const { reference, digest } = await registry.push(id, { signer: false })
    await signImage(registry.client, `modules/${id}`, digest, registry.keys.trusted.privateKeyPem, { layout: 'tag' })
    expect(await resolve(reference)).toMatchObject({ isVerified: true })
  })

  test('is over a digest, not over a tag: a tag that leads to another image is not signed any more', async () => {
    const id = newModuleId()
    const signed = await registry.push(id, { tag: 'latest' })
    const moved = await registry.push(id, { tag: 'latest', signer: false, files: [{ path: '/evil', content: 'x' }] })
    expect(moved.digest).not.toBe(signed.digest)
    expect(await resolveErrorCode(moved.reference)).toBe('module_signature_unverified')
    expect(await resolve(`${signed.repository}@${signed.digest}`)).toMatchObject({ isVerified: true })
  })

  test('that was copied from another image is no signature of this one', async () => {
    const id = newModuleId()
    const signed = await registry.push(id, { signer: false, tag: 'a' })
    await signImage(registry.client, `modules/${id}`, signed.digest, registry.keys.trusted.privateKeyPem, {
      layout: 'tag',
    })
    const target = await registry.push(id, { signer: false, tag: 'b', files: [{ path: '/evil', content: 'x' }] })
    const found = await registry.client.manifest(`modules/${id}`, `${signed.digest.replace(':', '-')}.sig`)
    if (found === undefined) throw new Error('There is no signature.')
    const place = `${target.digest.replace(':', '-')}.sig`
    await registry.client.putManifest(`modules/${id}`, place, found.bytes, found.descriptor.mediaType)
    const { code, message } = await resolveError(target.reference)
    expect([code, message]).toEqual(['module_signature_unverified', expect.stringContaining('is for')])
  })

  test('of one image of an index installs that image, of the index all of it', async () => {
    const id = newModuleId()
    const repository = `modules/${id}`
    const { digest } = await registry.push(id)
    const member = await registry.client.resolve(repository, digest)
    if (member === undefined) throw new Error('The image is not there.')
    const index: Index = {
      schemaVersion: 2,
      mediaType: mediaTypes.index,
      manifests: [{ ...member, platform: thisPlatform() }],
    }
    const bytes = Buffer.from(JSON.stringify(index))
    await registry.client.putManifest(repository, 'multi', bytes, mediaTypes.index)
    const reference = `${registry.host}/${repository}:multi`
    expect(await resolve(reference)).toMatchObject({ isVerified: true, digest })
    const top = digestOf(bytes)
    await signImage(registry.client, repository, top, registry.keys.trusted.privateKeyPem)
    expect(await resolve(reference)).toMatchObject({ isVerified: true, digest: top })
  })
})

describe('an image that cannot be had', () => {
  test.each([
    ['an unknown repository', () => `${registry.host}/modules/none:1.0.0`],
    ['an unknown digest', () => `${registry.host}/modules/none@sha256:${'0'.repeat(64)}`],
    ['a registry that does not answer', () => '127.0.0.1:1/modules/hello:1.0.0'],
    ['a name that leads nowhere', () => 'registry.invalid/modules/hello:1.0.0'],
  ])('is out of reach: %s', async (_, reference) => {
    expect(await resolveErrorCode(reference())).toBe('image_unreachable')
  })

  test('a registry on a private address that the operator has not named is not asked', async () => {
    const { message } = await resolveError('169.254.169.254/latest/meta-data:1.0.0')
    expect(message).toContain('PLAT_REGISTRY_ALLOW')
  })

  test('a registry gets so much time in all, however many requests there are', async () => {
    const client = registryClientFor(registry.host, { untilMs: Date.now() + 50_000 })
    await client.resolve('modules/none', 'x')
    advanceClock(50_001)
    await expect(client.resolve('modules/none', 'x')).rejects.toThrow('no whole answer')
  })
})
