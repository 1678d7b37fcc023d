import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CliError } from '@platform/cli/exit'
import type * as Feed from '@platform/core/updates/release-feed'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { generateKeyPair } from '@platform/oci/signature/key'
import { bundleType } from '@platform/oci/signature/envelope'
import { mediaTypes } from '@platform/oci/types'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Artifact, artifactOf, type ReleaseFacts } from '../../scripts/release/artifact.ts'
import { publishToFolder } from '../../scripts/release/folder.ts'
import { publish, type Repository } from '../../scripts/release/publish.ts'
import { findPublishedRelay, signRelay } from '../../scripts/release/relay.ts'
import { zipOf } from '../../scripts/release/zip.ts'
import { startDockerRegistry } from '../support/docker-registry.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const { privateKeyPem, publicKeyPem } = generateKeyPair()
const createdAt = '2026-01-01T00:00:00.000Z'
const releaseNotesUrl = 'https://example.com/notes'

function releaseOf(version: string, text = 'export const handler = () => {}', facts: Partial<ReleaseFacts> = {}) {
  const zips = new Map([
    ['meta', zipOf({ 'index.mjs': Buffer.from(text), 'dist/docs.html': Buffer.from(version) })],
    ['queue/batches', zipOf({ 'index.mjs': Buffer.from(`${text}//${version}`) })],
  ])
  return { zips, artifact: artifactOf({ version, createdAt, releaseNotesUrl, minFrom: '0.0.1', ...facts }, zips) }
}

const name = 'platform/releases'
let registry: Awaited<ReturnType<typeof startDockerRegistry>>
let repository: Repository
let feed: Pick<typeof Feed, 'fetchFunction' | 'findRelease' | 'newestRelease'>

beforeAll(async () => {
  registry = await startDockerRegistry()
  repository = { client: registryClient(registry.host, { transport: plainTransport }), name }
  vi.stubEnv('PLAT_RELEASE_SOURCE', `${registry.host}/${name}`)
  vi.stubEnv('PLAT_REGISTRY_ALLOW', registry.host)
  vi.stubEnv('PLAT_RELEASE_KEYS', JSON.stringify([{ name: 'ours', pem: publicKeyPem }]))
  feed = await import('@platform/core/updates/release-feed')
})
afterAll(() => registry[Symbol.asyncDispose]())

test('a platform finds and trusts a published release and fetches its functions', async () => {
  const { artifact, zips } = releaseOf('9.1.0+build.7')
  expect(await publish(repository, artifact, privateKeyPem)).toBe(true)
  const release = await feed.findRelease('9.1.0+build.7')
  expect(release).toMatchObject({
    digest: artifact.digest,
    repository: `${registry.host}/${name}`,
    verifiedBy: 'ours',
    document: { version: '9.1.0+build.7', createdAt, minFrom: '0.0.1' },
  })
  for (const [functionName, zip] of zips)
    expect(await feed.fetchFunction(release, functionName)).toEqual(Buffer.from(zip))
  expect((await feed.newestRelease('0.1.0')).release?.digest).toBe(artifact.digest)
})

test('publishing the same release again changes nothing', async () => {
  const newArtifact = async (file: string) => {
    const relay = signRelay(Buffer.from(file), privateKeyPem, await findPublishedRelay(repository, '9.2.0'))
    return releaseOf('9.2.0', undefined, { relay }).artifact
  }
  const artifact = await newArtifact('relay')
  await publish(repository, artifact, privateKeyPem)
  expect(await publish(repository, await newArtifact('relay'), privateKeyPem)).toBe(false)
  await expect(publish(repository, await newArtifact('other relay'), privateKeyPem)).rejects.toThrow(/other content/)
  expect(await repository.client.referrers(name, artifact.digest, bundleType)).toHaveLength(1)
})

test('rejects other content for a published version', async () => {
  const { artifact } = releaseOf('9.3.0')
  await publish(repository, artifact, privateKeyPem)
  const second = publish(repository, releaseOf('9.3.0', 'export const handler = 1').artifact, privateKeyPem)
  await expect(second).rejects.toThrow(CliError)
  await expect(second).rejects.toThrow(/platform\/releases:9\.3\.0 already exists with other content/)
  expect((await feed.findRelease('9.3.0')).digest).toBe(artifact.digest)
})

test('publishing again signs an unsigned release', async () => {
  const { artifact } = releaseOf('9.4.0')
  for (const blob of artifact.blobs) await repository.client.putBlob(name, blob)
  await repository.client.putManifest(name, artifact.tag, artifact.manifest, mediaTypes.manifest)
  await expect(feed.findRelease('9.4.0')).rejects.toMatchObject({ code: 'version_not_available' })
  expect(await publish(repository, artifact, privateKeyPem)).toBe(true)
  expect((await feed.findRelease('9.4.0')).verifiedBy).toBe('ours')
})

test('a platform rejects a release that an unknown key signed', async () => {
  await publish(repository, releaseOf('9.5.0').artifact, generateKeyPair().privateKeyPem)
  await expect(feed.findRelease('9.5.0')).rejects.toThrow(/no trusted key/)
})

test('skopeo copies a release with all its signatures from a folder to a registry', async () => {
  await using folder = await temporaryFolder()
  const output = join(folder.path, 'out')
  // Like the command, uses a new work folder each time.
  const publishHere = (artifact: Artifact, key: string) =>
    publishToFolder(output, artifact, key, join(folder.path, crypto.randomUUID()))
  const { artifact } = releaseOf('9.6.0')
  const retiredKeys = generateKeyPair()
  expect(await publishHere(artifact, retiredKeys.privateKeyPem)).toBe(true)
  expect(await publishHere(artifact, privateKeyPem)).toBe(true)
  for (const key of [retiredKeys.privateKeyPem, privateKeyPem]) expect(await publishHere(artifact, key)).toBe(false)
  const second = publishHere(releaseOf('9.6.0', 'export {}').artifact, privateKeyPem)
  await expect(second).rejects.toThrow(/9\.6\.0 already exists with other content/)
  for (const tag of [`${artifact.digest.replace(':', '-')}.sig`, '9.6.0']) {
    const target = `docker://${registry.host}/${name}:${tag}`
    const options = ['--preserve-digests', '--dest-tls-verify=false']
    await promisify(execFile)('skopeo', ['copy', ...options, `oci:${output}:${tag}`, target])
  }
  expect(await feed.findRelease('9.6.0')).toMatchObject({ digest: artifact.digest, verifiedBy: 'ours' })
})
