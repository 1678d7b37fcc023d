import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readReleaseSigningKey } from '@platform/local/generated-secrets'
import { releaseRepository } from '@platform/local/release-settings'
import { readRuntimeFile } from '@platform/local/runtime-file'
import { registryClient } from '@platform/oci/client'
import { plainTransport } from '@platform/oci/plain-transport'
import { mediaTypes } from '@platform/oci/types'
import { type Plugin, stop } from 'esbuild'
import { artifactOf, type ReleaseFacts } from '../../scripts/release/artifact.ts'
import { functionFiles, type packFunctions } from '../../scripts/release/functions.ts'
import { publish, type Repository } from '../../scripts/release/publish.ts'
import { zipOf } from '../../scripts/release/zip.ts'
import { root } from '../../scripts/source.ts'
import { buildOnce } from './build-cache.ts'
import type { PlatformProcess } from './platform.ts'

/** Real and broken releases for platforms under test. */

/** Placeholders for version and behaviour in built code, replaced later. */
const [versionMark, wayMark] = ['@@version@@', '@@way@@']

/** Response header with the version. */
export const releaseHeader = 'x-test-release'

/** Differences between the release and the checkout. */
type Way = 'as it is' | 'telling' | 'failing' | 'failing for users' | 'throwing for users' | 'hanging for users'

/** No difference but the version. */
export const asItIs: Way = 'as it is'

/** Responses contain the version. */
export const telling: Way = 'telling'

/** Every second request returns 500. */
export const failingHalfTheTime: Way = 'failing'

/** Passes all tests of the update, but every second authenticated request returns 500. */
export const failingForUsers: Way = 'failing for users'

/** Passes all tests of the update, but half of the authenticated requests fail before the API's own code. */
export const throwingForUsers: Way = 'throwing for users'

/** Passes all tests of the update, but half of the authenticated requests never get a response. */
export const hangingForUsers: Way = 'hanging for users'

const wayIs = (way: Way): string => `(['${wayMark}'].join() === '${way}')`

/** Changes source files while they are bundled. */
const changing = (name: string, filter: RegExp, change: (text: string, path: string) => string): Plugin => ({
  name,
  setup(builder) {
    builder.onLoad({ filter }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      return { contents: change(text, path), loader: 'ts' }
    })
  },
})

const broken = `throw new Error('broken')`

/** Wraps the handler of every function. */
const handler = `async (event: any) => {
  const isHalf = Math.random() < 0.5
  const isOfSomebody = event.headers?.authorization && isHalf
  if (${wayIs(failingHalfTheTime)} && event.rawPath !== undefined && isHalf) {
    return { statusCode: 500, headers: {}, body: 'broken' }
  }
  if (${wayIs(throwingForUsers)} && isOfSomebody) ${broken}
  if (${wayIs(hangingForUsers)} && isOfSomebody) await new Promise(() => {})
  const answer = await whole(event)
  if (!${wayIs(telling)} || answer?.statusCode === undefined) return answer
  return { ...answer, headers: { ...answer.headers, '${releaseHeader}': releasedVersion } }
}`

const changes: readonly Plugin[] = [
  changing('around', /\/functions\/.*\.ts$/, (text, path) => {
    if (/\/(?:queue|schedule)\/|bootstrap\.ts$/.test(path)) return text
    return `${text.replace('export const handler =', 'const whole: any =')}\nexport const handler = ${handler}`
  }),
  changing('for-users', /\/http\/src\/authorize\.ts$/, (text) =>
    text
      .replace('async function userOf(', 'let asked = 0\nasync function userOf(')
      .replace(
        'return { ...caller, address }',
        `if (${wayIs(failingForUsers)} && ++asked % 2) ${broken}\n  return { ...caller, address }`,
      ),
  ),
]

type Zips = Awaited<ReturnType<typeof packFunctions>>

async function unmarked(): ReturnType<typeof functionFiles> {
  try {
    return await functionFiles(versionMark, join(root, 'dist'), changes)
  } finally {
    // esbuild would keep gigabytes until this process exits.
    await stop()
  }
}

const builtOfAll = () => buildOnce('functions', 'test/support/releases.ts', unmarked)

let built: ReturnType<typeof functionFiles> | undefined

/** The functions of a version with this behaviour. */
export async function builtFunctions(version: string, way: Way): Promise<Zips> {
  const chosen = (content: Uint8Array) =>
    Buffer.from(Buffer.from(content).toString().replaceAll(versionMark, version).replaceAll(wayMark, way))
  const zips = [...(await (built ??= builtOfAll()))].map(([name, files]) => {
    const code = Object.entries(files).map(([path, content]) => [
      path,
      path.endsWith('.mjs') ? chosen(content) : content,
    ])
    return [name, zipOf(Object.fromEntries(code))] as const
  })
  return new Map(zips)
}

/** A client of the release repository with the owner's permissions. */
async function releasesOf({ dataDir }: PlatformProcess): Promise<Repository> {
  const { registry } = await readRuntimeFile(dataDir)
  const client = registryClient(registry.host, { transport: plainTransport, credentials: async () => registry })
  return { client, name: releaseRepository }
}

type Facts = Pick<ReleaseFacts, 'version' | 'minFrom' | 'releaseNotesUrl'>

const madeOf = (facts: Facts, zips: Zips) => artifactOf({ createdAt: '2026-01-01T00:00:00.000Z', ...facts }, zips)

/** Pushes a release without a signature. */
export async function pushed(platform: PlatformProcess, facts: Facts, zips: Zips, tag = facts.version): Promise<void> {
  const { client, name } = await releasesOf(platform)
  const { blobs, manifest } = madeOf(facts, zips)
  for (const blob of blobs) await client.putBlob(name, blob)
  await client.putManifest(name, tag, manifest, mediaTypes.manifest)
}

/** Pushes a release that is signed with the platform's key or another one. */
export async function published(
  platform: PlatformProcess,
  facts: Facts,
  zips: Zips,
  privateKeyPem?: string,
): Promise<void> {
  const artifact = madeOf(facts, zips)
  await publish(await releasesOf(platform), artifact, privateKeyPem ?? (await readReleaseSigningKey(platform.dataDir)))
}
