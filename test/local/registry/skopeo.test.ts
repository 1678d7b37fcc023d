import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { mediaTypes } from '@platform/oci/types'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { digestOf, freshRegistry, manifestOf, password } from './support.ts'

const run = promisify(execFile)
const hasSkopeo = await run('skopeo', ['--version']).then(
  () => true,
  () => false,
)

const skopeo = async (...args: string[]): Promise<string> =>
  (await run('skopeo', ['--insecure-policy', ...args], { timeout: 30_000 })).stdout

/** Writes an image in the OCI layout; returns its digest. */
async function writeLayout(folder: string): Promise<string> {
  const config = JSON.stringify({
    architecture: 'amd64',
    os: 'linux',
    config: { Labels: { 'org.platform.module': 'true' } },
    rootfs: { type: 'layers', diff_ids: [digestOf('a layer')] },
  })
  const layer = gzipSync('a layer')
  const manifest = manifestOf(config, layer)
  await mkdir(join(folder, 'blobs/sha256'), { recursive: true })
  for (const content of [config, layer, manifest]) {
    await writeFile(join(folder, 'blobs/sha256', digestOf(content).slice(7)), content)
  }
  const descriptor = { mediaType: mediaTypes.manifest, digest: digestOf(manifest), size: manifest.length }
  const manifests = [{ ...descriptor, annotations: { 'org.opencontainers.image.ref.name': '1.0.0' } }]
  await writeFile(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }))
  await writeFile(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  return digestOf(manifest)
}

test.skipIf(!hasSkopeo)('skopeo copies, inspects, lists and deletes images', async () => {
  await using folder = await temporaryFolder()
  await using registry = await freshRegistry()
  const [source, target] = ['source', 'target'].map((name) => join(folder.path, name)) as [string, string]
  const digest = await writeLayout(source)
  const image = `docker://${registry.host}/modules/hello:1.0.0`
  const copy = `docker://${registry.host}/modules/copy:latest`
  const credentials = `platform:${password}`
  const into = ['--dest-tls-verify=false', `oci:${source}:1.0.0`, image]

  await expect(skopeo('copy', '-q', ...into)).rejects.toThrow('unauthorized')
  await expect(skopeo('copy', '-q', '--dest-creds', 'platform:wrong', ...into)).rejects.toThrow('unauthorized')
  await skopeo('copy', '-q', '--dest-creds', credentials, ...into)
  const inspected = JSON.parse(await skopeo('inspect', '--tls-verify=false', image))
  expect(inspected).toMatchObject({ Digest: digest, Labels: { 'org.platform.module': 'true' }, RepoTags: ['1.0.0'] })

  const both = ['--src-tls-verify=false', '--dest-tls-verify=false', '--dest-creds', credentials]
  await skopeo('copy', '-q', ...both, image, copy)
  await skopeo('copy', '-q', '--src-tls-verify=false', copy, `oci:${target}:1.0.0`)
  const name = join('blobs/sha256', digest.slice(7))
  expect(await readFile(join(target, name), 'utf8')).toBe(await readFile(join(source, name), 'utf8'))

  await skopeo('delete', '--tls-verify=false', '--creds', credentials, copy)
  const tags = async (repository: string) =>
    JSON.parse(await skopeo('list-tags', '--tls-verify=false', `docker://${registry.host}/${repository}`)).Tags
  expect([await tags('modules/hello'), await tags('modules/copy')]).toEqual([['1.0.0'], []])
  expect(registry.failures).toEqual([])
})
