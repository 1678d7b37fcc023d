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

/** Releases for platforms under test: real ones, and ones that were broken on purpose. */

/** What stands for the version and the way of a release in code that is built, until both are chosen. */
const [versionMark, wayMark] = ['@@version@@', '@@way@@']

/** The header that tells which release has answered. */
export const releaseHeader = 'x-test-release'

/** How a release is another than the checkout. */
type Way = 'as it is' | 'telling' | 'failing' | 'failing for users' | 'throwing for users' | 'hanging for users'

/** As the checkout, but for its version. */
export const asItIs: Way = 'as it is'

/** A good release whose answers tell its version. */
export const telling: Way = 'telling'

/** Answers 500 to every other request, whatever it is. */
export const failingHalfTheTime: Way = 'failing'

/** Good for all that an update tries by itself, and fails at every other request of somebody who is signed in. */
export const failingForUsers: Way = 'failing for users'

/** Good for all that an update tries by itself; half of what somebody asks who is signed in never gets to the API's own code. */
export const throwingForUsers: Way = 'throwing for users'

/** Good for all that an update tries by itself; half of what somebody asks who is signed in is never answered. */
export const hangingForUsers: Way = 'hanging for users'

/** Nothing that builds the code can tell what this answers: one build serves for all ways. */
const wayIs = (way: Way): string => `(['${wayMark}'].join() === '${way}')`

/** Changes the text of source files on their way into a release. */
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

/** What stands around the handler of every function that answers requests. */
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

/** All functions, of no version and in no way yet. */
async function unmarked(): ReturnType<typeof functionFiles> {
  try {
    return await functionFiles(versionMark, join(root, 'dist'), changes)
  } finally {
    // It would keep gigabytes for as long as this process runs.
    await stop()
  }
}

const builtOfAll = () => buildOnce('functions', 'test/support/releases.ts', unmarked)

let built: ReturnType<typeof functionFiles> | undefined

/** The functions of a version, as they are in one of the ways. */
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

/** The repository that a platform looks for releases in, opened by its owner. */
async function releasesOf({ dataDir }: PlatformProcess): Promise<Repository> {
  const { registry } = await readRuntimeFile(dataDir)
  const client = registryClient(registry.host, { transport: plainTransport, credentials: async () => registry })
  return { client, name: releaseRepository }
}

type Facts = Pick<ReleaseFacts, 'version' | 'minFrom' | 'releaseNotesUrl'>

const madeOf = (facts: Facts, zips: Zips) => artifactOf({ createdAt: '2026-01-01T00:00:00.000Z', ...facts }, zips)

/** Pushes functions as a release without a signature, under the tag of its version or another. */
export async function pushed(platform: PlatformProcess, facts: Facts, zips: Zips, tag = facts.version): Promise<void> {
  const { client, name } = await releasesOf(platform)
  const { blobs, manifest } = madeOf(facts, zips)
  for (const blob of blobs) await client.putBlob(name, blob)
  await client.putManifest(name, tag, manifest, mediaTypes.manifest)
}

/** Publishes functions for a platform to find, signed with its own key or with another. */
export async function published(
  platform: PlatformProcess,
  facts: Facts,
  zips: Zips,
  privateKeyPem?: string,
): Promise<void> {
  const artifact = madeOf(facts, zips)
  await publish(await releasesOf(platform), artifact, privateKeyPem ?? (await readReleaseSigningKey(platform.dataDir)))
}
