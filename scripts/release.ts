/** `npm run release`: builds the functions as a release, signs it and publishes it. */
import { createPublicKey } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { explainError } from '@platform/cli/author/explain-error'
import { CliError } from '@platform/cli/exit'
import { exitOnHelp } from '@platform/local/command-line'
import { tagOf } from '@platform/core/updates/release-document'
import { signatureTag } from '@platform/oci/signature/sign'
import prerelease from 'semver/functions/prerelease.js'
import { type Artifact, artifactOf } from './release/artifact.ts'
import { readCurrentCommit } from './release/commit.ts'
import { publishToFolder } from './release/folder.ts'
import { type Options, parseOptions, usage } from './release/options.ts'
import { packFunctions, relayFile } from './release/functions.ts'
import { releaseRepositoryFor, findSigningKey } from './release/destination.ts'
import { publish, type Repository } from './release/publish.ts'
import { findPublishedRelay, signRelay } from './release/relay.ts'

const print = (line: string): void => console.log(line)
const duration = (): string => `${(performance.now() / 1000).toFixed(1)} s`

async function build(
  { version, releaseNotesUrl, minFrom }: Options,
  key: string,
  workFolder: string,
  destination: Repository | string,
): Promise<Artifact> {
  const { name = 'a folder without git', isChanged, createdAt } = await readCurrentCommit()
  print(`Building ${version} of ${name}${isChanged ? ', with uncommitted changes' : ''} …`)
  const publicKeyPem = createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString()
  const zips = await packFunctions(version, workFolder, [], publicKeyPem)
  const mebibytes = [...zips.values()].reduce((total, { length }) => total + length, 0) / 2 ** 20
  print(`Built ${zips.size} functions after ${duration()}: ${mebibytes.toFixed(1)} MiB.`)
  const program = await readFile(join(workFolder, relayFile))
  const relay = signRelay(program, key, await findPublishedRelay(destination, tagOf(version)))
  return artifactOf({ version, createdAt, releaseNotesUrl, relay, ...(minFrom !== undefined && { minFrom }) }, zips)
}

async function release(options: Options, workFolder: string): Promise<void> {
  const { output } = options
  // Missing prerequisites are reported before the build.
  const key = await findSigningKey(options)
  const repository = output === undefined ? await releaseRepositoryFor(options) : undefined
  const artifact = await build(options, key, join(workFolder, 'built'), repository ?? output ?? '')
  const { tag, digest } = artifact
  const destination = repository ? `${repository.client.registry}/${repository.name}` : `oci:${output}`
  print(`Signing the release and publishing it to ${destination} …`)
  const isNew = repository
    ? await publish(repository, artifact, key)
    : await publishToFolder(output ?? '', artifact, key, join(workFolder, 'registry'))
  print(`${destination}:${tag} ${isNew ? 'was published' : 'was already published'}: ${digest}, after ${duration()}.`)
  print(nextStep(options, artifact))
}

function nextStep({ output, version }: Options, { tag, digest }: Artifact): string {
  if (prerelease(version) !== null) return 'This is a prerelease: platforms do not offer or apply it.'
  if (output === undefined) {
    return `Next, as an administrator: npx plat update check, then npx plat update apply ${version}`
  }
  const copy = `skopeo copy --preserve-digests oci:${output}:TAG docker://REGISTRY/REPOSITORY:TAG`
  return `Next, on the target network: ${copy}, for TAG\n  ${signatureTag(digest)}, then\n  ${tag}`
}

exitOnHelp(usage)
const workFolder = await mkdtemp(join(tmpdir(), 'platform-release-'))
try {
  await mkdir(join(workFolder, 'registry'))
  await release(parseOptions(process.argv.slice(2)), workFolder)
} catch (error) {
  const failure = explainError(error)
  console.error(failure instanceof CliError ? failure.message : failure)
  process.exitCode = failure instanceof CliError ? failure.exitCode : 1
} finally {
  await rm(workFolder, { recursive: true })
}
