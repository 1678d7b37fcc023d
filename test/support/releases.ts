import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readReleaseSigningKey } from '@platform/local/generated-secrets'
import { releaseRepository } from '@platform/local/release-settings'
import { mediaTypes } from '@platform/oci/types'
import { type Plugin, stop } from 'esbuild'
import { artifactOf, type ReleaseFacts } from '../../scripts/release/artifact.ts'
import { buildFunctionFiles, type packFunctions } from '../../scripts/release/functions.ts'
import { publish, type Repository } from '../../scripts/release/publish.ts'
import { zipOf } from '../../scripts/release/zip.ts'
import { root } from '../../scripts/source.ts'
import { buildOnce } from './build-cache.ts'
import type { PlatformProcess } from './platform.ts'
import { registryOf } from './registry.ts'

/** Placeholders in built code for the version and the behaviour of a release. */
const [versionMark, behaviourMark] = ['@@version@@', '@@behaviour@@']

export const releaseHeader = 'x-test-release'

/**
 * Differences between the release and the checkout: responses contain the version; half of the requests return 500; or
 * the release passes all tests of the update, but half of the authenticated requests return 500, fail before the API's
 * own code, or never get a response.
 */
type Behaviour = 'reports version' | 'fails' | 'fails for users' | 'throws for users' | 'hangs for users'

const ifBehaviour = (behaviour: Behaviour): string => `(['${behaviourMark}'].join() === '${behaviour}')`
const throwStatement = `throw new Error('broken')`

const handler = `async (event: any) => {
  const isHalf = Math.random() < 0.5
  const isOfUser = event.headers?.authorization && isHalf
  if (${ifBehaviour('fails')} && event.rawPath !== undefined && isHalf) {
    return { statusCode: 500, headers: {}, body: 'broken' }
  }
  if (${ifBehaviour('throws for users')} && isOfUser) ${throwStatement}
  if (${ifBehaviour('hangs for users')} && isOfUser) await new Promise(() => {})
  const answer = await whole(event)
  if (!${ifBehaviour('reports version')} || answer?.statusCode === undefined) return answer
  return { ...answer, headers: { ...answer.headers, '${releaseHeader}': releasedVersion } }
}`

const failForUsers = `if (${ifBehaviour('fails for users')} && ++authorizedCount % 2) ${throwStatement}`

/** Throws unless the text contains `search` exactly once, because the release would otherwise not fail. */
function replaceOnce(text: string, search: string | RegExp, replacement: string): string {
  if (text.split(search).length !== 2) throw new Error(`The code does not contain ${search} once.`)
  return text.replace(search, replacement)
}

function change(path: string, text: string): string {
  if (path.endsWith('/http/src/authorize.ts')) {
    const markedText = replaceOnce(text, 'async function userOf(', 'let authorizedCount = 0\nasync function userOf(')
    return replaceOnce(markedText, /(?=return withOrigin\(caller,)/, `${failForUsers}\n  `)
  }
  if (/\/(?:queue|schedule)\/|bootstrap\.ts$/.test(path)) return text
  return `${replaceOnce(text, 'export const handler =', 'const whole: any =')}\nexport const handler = ${handler}`
}

const changes: Plugin = {
  name: 'behaviours',
  setup(builder) {
    builder.onLoad({ filter: /\/functions\/.*\.ts$|\/http\/src\/authorize\.ts$/ }, async ({ path }) => {
      return { contents: change(path, await readFile(path, 'utf8')), loader: 'ts' }
    })
  },
}

type Zips = Awaited<ReturnType<typeof packFunctions>>

async function build(): ReturnType<typeof buildFunctionFiles> {
  try {
    return await buildFunctionFiles(versionMark, join(root, 'dist'), [changes])
  } finally {
    // Otherwise the esbuild service keeps its memory until this process exits.
    await stop()
  }
}

let builtFiles: ReturnType<typeof buildFunctionFiles> | undefined

export async function builtFunctions(version: string, behaviour: Behaviour): Promise<Zips> {
  builtFiles ??= buildOnce('functions', 'test/support/releases.ts', build)
  const resolve = (content: Uint8Array) =>
    Buffer.from(Buffer.from(content).toString().replaceAll(versionMark, version).replaceAll(behaviourMark, behaviour))
  const zips = [...(await builtFiles)].map(([name, files]) => {
    const resolvedFiles = Object.entries(files).map(([path, content]) => {
      return [path, path.endsWith('.mjs') ? resolve(content) : content]
    })
    return [name, zipOf(Object.fromEntries(resolvedFiles))] as const
  })
  return new Map(zips)
}

const releasesOf = async (platform: PlatformProcess): Promise<Repository> => ({
  client: await registryOf(platform),
  name: releaseRepository,
})

type Facts = Pick<ReleaseFacts, 'version' | 'minFrom' | 'relay'> & Partial<Pick<ReleaseFacts, 'releaseNotesUrl'>>

const artifactFor = (facts: Facts, zips: Zips) =>
  artifactOf({ createdAt: '2026-01-01T00:00:00.000Z', releaseNotesUrl: 'https://example.com/notes', ...facts }, zips)

export async function pushUnsignedRelease(
  platform: PlatformProcess,
  facts: Facts,
  zips: Zips,
  tag = facts.version,
): Promise<void> {
  const { client, name } = await releasesOf(platform)
  const { blobs, manifest } = artifactFor(facts, zips)
  for (const blob of blobs) await client.putBlob(name, blob)
  await client.putManifest(name, tag, manifest, mediaTypes.manifest)
}

export async function publishRelease(platform: PlatformProcess, facts: Facts, zips: Zips, privateKeyPem?: string) {
  const key = privateKeyPem ?? (await readReleaseSigningKey(platform.dataDir))
  await publish(await releasesOf(platform), artifactFor(facts, zips), key)
}
