import { readFile } from 'node:fs/promises'
import { readReleaseSigningKey } from '@platform/local/kept-secret'
import { releaseRepository } from '@platform/local/release-settings'
import { readRuntimeFile } from '@platform/local/runtime-file'
import { registryClient } from '@platform/registry/client'
import { plainTransport } from '@platform/registry/plain-transport'
import { mediaTypes } from '@platform/registry/types'
import type { Plugin } from 'esbuild'
import { artifactOf, type ReleaseFacts } from '../../scripts/release/artifact.ts'
import { packFunctions } from '../../scripts/release/functions.ts'
import { publish, type Repository } from '../../scripts/release/publish.ts'
import type { PlatformProcess } from './platform.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** Releases for platforms under test: real ones, and ones that were broken on purpose. */

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

/** Puts something around the handler of every function that answers requests. */
const around = (name: string, handler: string): Plugin =>
  changing(name, /\/functions\/.*\.ts$/, (text, path) => {
    if (/\/(?:queue|schedule)\/|bootstrap\.ts$/.test(path)) return text
    const renamed = text.replace('export const handler =', 'const whole: any =')
    return `${renamed}\nexport const handler = async (event: any) => ${handler}`
  })

/** The header that tells which release has answered. */
export const releaseHeader = 'x-test-release'

/** A good release whose answers tell its version. */
export const telling = around(
  'telling',
  `{
    const answer = await whole(event)
    const headers = { ...answer?.headers, '${releaseHeader}': releasedVersion }
    return answer?.statusCode === undefined ? answer : { ...answer, headers }
  }`,
)

/** Answers 500 to every other request, whatever it is. */
export const failingHalfTheTime = around(
  'failing',
  `event.rawPath === undefined || Math.random() < 0.5 ? whole(event) : { statusCode: 500, headers: {}, body: 'broken' }`,
)

/** Good for all that an update tries by itself, and fails at every other request of somebody who is signed in. */
export const failingForUsers = changing('failing-for-users', /\/http\/src\/authorize\.ts$/, (text) =>
  text
    .replace('async function userOf(', 'let broken = 0\nasync function userOf(')
    .replace(
      'return { ...caller, address }',
      `if (++broken % 2) throw new Error('broken')\n  return { ...caller, address }`,
    ),
)

/** Good for all that an update tries by itself; half of what somebody asks who is signed in never gets to the API's own code. */
export const throwingForUsers = around(
  'throwing',
  `{
    if (event.headers?.authorization && Math.random() < 0.5) throw new Error('broken')
    return whole(event)
  }`,
)

/** Good for all that an update tries by itself; half of what somebody asks who is signed in is never answered. */
export const hangingForUsers = around(
  'hanging',
  `{
    if (event.headers?.authorization && Math.random() < 0.5) await new Promise(() => {})
    return whole(event)
  }`,
)

type Zips = Awaited<ReturnType<typeof packFunctions>>

/** The functions of a version, changed. */
export async function builtFunctions(version: string, change: Plugin): Promise<Zips> {
  await using folder = await temporaryFolder()
  return await packFunctions(version, `${folder.path}/assets`, [change])
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
