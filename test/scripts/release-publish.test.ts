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
import { type Artifact, artifactOf } from '../../scripts/release/artifact.ts'
import { publishToFolder } from '../../scripts/release/folder.ts'
import { publish, type Repository } from '../../scripts/release/publish.ts'
import { zipOf } from '../../scripts/release/zip.ts'
import { startDockerRegistry } from '../support/docker-registry.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const run = promisify(execFile)
const { privateKeyPem, publicKeyPem } = generateKeyPair()
const createdAt = '2026-01-01T00:00:00.000Z'

/** A release of two small functions, and their archives. */
function madeOf(version: string, text = 'export const handler = () => {}') {
  const zips = new Map([
    ['meta', zipOf({ 'index.mjs': Buffer.from(text), 'dist/docs.html': Buffer.from(version) })],
    ['queue/jobs', zipOf({ 'index.mjs': Buffer.from(`${text}//${version}`) })],
  ])
  return { zips, artifact: artifactOf({ version, createdAt, minFrom: '0.0.1' }, zips) }
}

const name = 'platform/releases'
let registry: Awaited<ReturnType<typeof startDockerRegistry>>
let repository: Repository
/** What a platform sees that looks there and trusts the key. */
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

const signaturesOf = ({ digest }: Artifact) => repository.client.referrers(name, digest, bundleType)

test('what is published is found by a platform, byte for byte, and trusted', async () => {
  const { artifact, zips } = madeOf('9.1.0+build.7')
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

test('publishing the same again changes nothing', async () => {
  const { artifact } = madeOf('9.2.0')
  await publish(repository, artifact, privateKeyPem)
  expect(await publish(repository, madeOf('9.2.0').artifact, privateKeyPem)).toBe(false)
  expect(await signaturesOf(artifact)).toHaveLength(1)
})

test('a version that is there with another content is refused, and stays as it is', async () => {
  const { artifact } = madeOf('9.3.0')
  await publish(repository, artifact, privateKeyPem)
  const other = publish(repository, madeOf('9.3.0', 'export const handler = 1').artifact, privateKeyPem)
  await expect(other).rejects.toThrow(CliError)
  await expect(other).rejects.toThrow(/platform\/releases:9\.3\.0 already exists with other content/)
  expect((await feed.findRelease('9.3.0')).digest).toBe(artifact.digest)
})

test('what was left unsigned is signed by the next try', async () => {
  const { artifact } = madeOf('9.4.0')
  for (const blob of artifact.blobs) await repository.client.putBlob(name, blob)
  await repository.client.putManifest(name, artifact.tag, artifact.manifest, mediaTypes.manifest)
  await expect(feed.findRelease('9.4.0')).rejects.toMatchObject({ code: 'version_not_available' })
  expect(await publish(repository, artifact, privateKeyPem)).toBe(true)
  expect((await feed.findRelease('9.4.0')).verifiedBy).toBe('ours')
})

test('a release that another key has signed is no release', async () => {
  await publish(repository, madeOf('9.5.0').artifact, generateKeyPair().privateKeyPem)
  await expect(feed.findRelease('9.5.0')).rejects.toThrow(/no trusted key/)
})

/** Publishes into a folder, each time from an empty folder of its own, as the command does. */
const inFolder = (around: string, output: string) => (artifact: Artifact, key: string) =>
  publishToFolder(output, artifact, key, join(around, crypto.randomUUID()))

test('a folder holds the same release, and skopeo carries it and its signature to a registry', async () => {
  await using folder = await temporaryFolder()
  const output = join(folder.path, 'out')
  const publishHere = inFolder(folder.path, output)
  const { artifact } = madeOf('9.6.0')
  expect(await publishHere(artifact, privateKeyPem)).toBe(true)
  expect(await publishHere(artifact, privateKeyPem)).toBe(false)
  const other = publishHere(madeOf('9.6.0', 'export {}').artifact, privateKeyPem)
  await expect(other).rejects.toThrow(/9\.6\.0 already exists with other content/)
  for (const tag of [`${artifact.digest.replace(':', '-')}.sig`, '9.6.0']) {
    const to = `docker://${registry.host}/${name}:${tag}`
    await run('skopeo', ['copy', '--preserve-digests', '--dest-tls-verify=false', `oci:${output}:${tag}`, to])
  }
  expect(await feed.findRelease('9.6.0')).toMatchObject({ digest: artifact.digest, verifiedBy: 'ours' })
})

test('a folder that was signed with another key is signed again, and holds both signatures', async () => {
  await using folder = await temporaryFolder()
  const output = join(folder.path, 'out')
  const publishHere = inFolder(folder.path, output)
  const { artifact } = madeOf('9.7.0')
  const before = generateKeyPair()
  await publishHere(artifact, before.privateKeyPem)
  expect(await publishHere(artifact, privateKeyPem)).toBe(true)
  for (const key of [before.privateKeyPem, privateKeyPem]) expect(await publishHere(artifact, key)).toBe(false)
  for (const tag of [`${artifact.digest.replace(':', '-')}.sig`, '9.7.0']) {
    const to = `docker://${registry.host}/${name}:${tag}`
    await run('skopeo', ['copy', '--preserve-digests', '--dest-tls-verify=false', `oci:${output}:${tag}`, to])
  }
  expect(await feed.findRelease('9.7.0')).toMatchObject({ digest: artifact.digest, verifiedBy: 'ours' })
})
