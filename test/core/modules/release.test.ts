import { elapsedMs } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { ownKeyName } from '@platform/core/modules/record'
import { currentPlatform } from '@platform/oci/image'
import { digestOf } from '@platform/oci/digest'
import { signImage } from '@platform/oci/signature/sign'
import { type Index, mediaTypes } from '@platform/oci/types'
import { registryClientFor } from '@platform/core/modules/registries'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import { moduleLabels, writtenManifest } from '../../support/module-registry.ts'
import { newModuleId } from '../support/modules.ts'
import { resolve, resolveError, resolveErrorCode } from '../support/releases.ts'

const registry = await vi.hoisted(async () => (await import('../../support/module-registry.ts')).startModuleFixtures())
afterAll(registry.close)
const { client } = registry
const { privateKeyPem } = registry.keys.trusted

async function rejection(reference: string) {
  const { code, message } = await resolveError(reference)
  return [code, message]
}

describe('resolving a release', () => {
  test('returns digest, manifest and signer', async () => {
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

  test('reads the manifest at the root, otherwise in the working directory', async () => {
    const id = newModuleId()
    const content = JSON.stringify(writtenManifest(id, '1.0.0', {}, { name: 'Folder' }))
    const files = [{ path: '/app/module.json', content }]
    const config = { WorkingDir: '/app' }
    const folderImage = await registry.push(id, { config, files, manifest: false, tags: ['folder'] })
    expect((await resolve(folderImage.reference)).manifest.metadata.name).toBe('Folder')
    const fullImage = await registry.push(id, { config, files, tags: ['both'] })
    expect((await resolve(fullImage.reference)).manifest.metadata.name).toBe(`Module ${id}`)
    const bareImage = await registry.push(id, { files, manifest: false, tags: ['elsewhere'] })
    expect(await rejection(bareImage.reference)).toEqual(['image_not_a_module', expect.stringContaining('module.json')])
  })

  test.each([
    ['all labels', {}],
    ['the module label', { 'org.platform.module': undefined }],
    ['a true module label', { 'org.platform.module': 'false' }],
    ['the id', { 'org.platform.module.id': undefined }],
    ['the version', { 'org.platform.module.version': undefined }],
  ])('rejects an image without %s', async (_, change) => {
    const id = newModuleId()
    const entries = Object.entries({ ...moduleLabels(id), ...change })
    const presentEntries = entries.filter((entry): entry is [string, string] => entry[1] !== undefined)
    const labels = Object.keys(change).length === 0 ? {} : Object.fromEntries(presentEntries)
    const { reference } = await registry.push(id, { labels })
    expect(await resolveErrorCode(reference)).toBe('image_not_a_module')
  })

  test('rejects labels, manifest or request of another id or version', async () => {
    const [id, secondId] = [newModuleId(), newModuleId()]
    const otherImage = await registry.push(id, { labels: moduleLabels(secondId), tags: ['a'] })
    expect(await resolveErrorCode(otherImage.reference)).toBe('manifest_id_mismatch')
    const validImage = await registry.push(id, { tags: ['b'] })
    expect(await resolveErrorCode(validImage.reference, { id: secondId })).toBe('manifest_id_mismatch')
    const otherVersion = await registry.push(id, { labels: moduleLabels(id, '0.9.0'), tags: ['c'] })
    expect(await resolveErrorCode(otherVersion.reference)).toBe('manifest_mismatch')
    expect(await resolveErrorCode(validImage.reference, { id, version: '1.0.1' })).toBe('manifest_mismatch')
  })

  test.each([
    ...['>=0.1.0 <1.0.0', '[0.1.0,1.0.0)', '^0.3.0', '*', '0.3.0', '[0.3.0,0.3.0]', '(0.2.9,)', '(,1.0.0)', '~0.3'].map(
      (range) => [range, true] as const,
    ),
    ...['^1.0.0', '[1.0.0,2.0.0)', '[0.1.0,0.3.0)', '(0.3.0,1.0.0)', '<0.3.0', '0.2.9 || >=0.4.0'].map(
      (range) => [range, false] as const,
    ),
  ])('compares the SDK range %s: %s', async (sdkVersion, isCompatible) => {
    const id = newModuleId()
    const { reference } = await registry.push(id, { manifest: writtenManifest(id, '1.0.0', { sdkVersion }) })
    if (isCompatible) expect(await resolve(reference)).toMatchObject({ moduleId: id })
    else expect(await rejection(reference)).toEqual(['sdk_incompatible', expect.stringContaining(sdkVersion)])
  })
})

test.each([
  ['seeded', 'tests', 'module_isolation_unavailable'],
  ['seeded', ownKeyName, undefined],
  ['any', 'tests', undefined],
] as const)('where processes may run %s modules, an image signed by %s: %s', async (allowed, signer, code) => {
  const { reference } = await registry.push(newModuleId())
  const originalKeys = config.PLAT_MODULE_KEYS
  onTestFinished(() => void Object.assign(config, { PLAT_MODULE_KEYS: originalKeys, PLAT_MODULE_PROCESSES: 'any' }))
  const keys = originalKeys.map((key) => ({ ...key, name: key.name === 'tests' ? signer : key.name }))
  Object.assign(config, { PLAT_MODULE_KEYS: keys, PLAT_MODULE_PROCESSES: allowed })
  expect(code === undefined ? await resolve(reference) : await resolveError(reference)).toMatchObject(
    code ? { code } : {},
  )
})

describe('a signature', () => {
  test.each([
    [false, 'No signature'],
    ['stranger', 'no trusted key'],
    ['scoped', 'team, which is not trusted for'],
  ] as const)('must be from a trusted key: rejects the signer %s', async (signer, reason) => {
    const { reference, digest } = await registry.push(newModuleId(), { signer })
    expect(await rejection(reference)).toEqual(['module_signature_unverified', expect.stringContaining(reason)])
    expect((await resolveError(reference)).message).toContain(digest)
  })

  test('of a key with limited repositories is accepted in those', async () => {
    const id = newModuleId()
    const { reference } = await registry.push(id, { signer: 'scoped', repository: `team/${id}` })
    expect(await resolve(reference)).toMatchObject({ isVerified: true, verifiedBy: 'team' })
  })

  test('in the tag layout is accepted, but not for another image', async () => {
    const id = newModuleId()
    const { reference, digest } = await registry.push(id, { signer: false, tags: ['a'] })
    await signImage(client, `modules/${id}`, digest, privateKeyPem, { layout: 'tag' })
    expect(await resolve(reference)).toMatchObject({ isVerified: true })
    const other = await registry.push(id, { signer: false, tags: ['b'], files: [{ path: '/evil', content: 'x' }] })
    const tagOf = (text: string) => `${text.replace(':', '-')}.sig`
    const signature = await client.manifest(`modules/${id}`, tagOf(digest))
    if (signature === undefined) throw new Error('The signature does not exist.')
    const { bytes, descriptor } = signature
    await client.putManifest(`modules/${id}`, tagOf(other.digest), bytes, descriptor.mediaType)
    expect(await rejection(other.reference)).toEqual(['module_signature_unverified', expect.stringContaining('is for')])
  })

  test('applies to a digest: a moved tag is not signed', async () => {
    const id = newModuleId()
    const signedImage = await registry.push(id, { tags: ['latest'] })
    const movedImage = await registry.push(id, {
      tags: ['latest'],
      signer: false,
      files: [{ path: '/evil', content: 'x' }],
    })
    expect(movedImage.digest).not.toBe(signedImage.digest)
    expect(await resolveErrorCode(movedImage.reference)).toBe('module_signature_unverified')
    expect(await resolve(`${signedImage.repository}@${signedImage.digest}`)).toMatchObject({ isVerified: true })
  })

  test('of an image in an index resolves to the image, and one of the index to the index', async () => {
    const id = newModuleId()
    const repository = `modules/${id}`
    const { digest } = await registry.push(id)
    const member = await client.resolve(repository, digest)
    if (member === undefined) throw new Error('The image does not exist.')
    const manifests = [{ ...member, platform: currentPlatform() }]
    const index: Index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests }
    const bytes = Buffer.from(JSON.stringify(index))
    await client.putManifest(repository, 'multi', bytes, mediaTypes.index)
    const reference = `${registry.host}/${repository}:multi`
    expect(await resolve(reference)).toMatchObject({ isVerified: true, digest })
    await signImage(client, repository, digestOf(bytes), privateKeyPem)
    expect(await resolve(reference)).toMatchObject({ isVerified: true, digest: digestOf(bytes) })
  })
})

test.each([
  ['an unknown repository', `${registry.host}/modules/none:1.0.0`, 'has no'],
  ['an unknown digest', `${registry.host}/modules/none@sha256:${'0'.repeat(64)}`, 'has no'],
  ['an unavailable registry', '127.0.0.1:1/modules/hello:1.0.0', ''],
  ['an unknown host', 'registry.invalid/modules/hello:1.0.0', ''],
  ['a private address', '169.254.169.254/latest/meta-data:1.0.0', 'PLAT_REGISTRY_ALLOW'],
])('reports %s as unreachable', async (_, reference, reason) => {
  expect(await rejection(reference)).toEqual(['image_unreachable', expect.stringContaining(reason)])
})

test('limits the total time of registry requests', async () => {
  const deadlineClient = registryClientFor(registry.host, { untilMs: elapsedMs() + 50_000 })
  await deadlineClient.resolve('modules/none', 'x')
  advanceClock(50_001)
  await expect(deadlineClient.resolve('modules/none', 'x')).rejects.toThrow('did not respond completely')
})
