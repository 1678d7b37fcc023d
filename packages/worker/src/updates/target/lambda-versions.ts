import { forEachLimit } from '@platform/core/lib/async'
import type { InstalledRelease } from '@platform/core/updates/record'
import { getFunction, getVersions } from '../../runtimes/lambda/control.ts'
import {
  type AliasControl,
  lambdaNameOf,
  maxConcurrentCalls,
  releaseIn,
  invokeVersion,
  labelOf,
  pollUntil,
} from './lambda-functions.ts'
import type { AliasState, AliasStates } from './lambda-aliases.ts'
import { TargetError, type StagedRelease } from './port.ts'
import { createHash } from 'node:crypto'
import {
  DeleteFunctionCommand,
  type FunctionConfiguration,
  PublishVersionCommand,
  UpdateFunctionCodeCommand,
} from '@aws-sdk/client-lambda'
import { isAws } from '@platform/core/aws/sdk'
import { log } from '@platform/core/log'
import { ProbeResponse, probeEvent } from '@platform/core/updates/version-probe'

interface ServingFunction extends AliasState {
  name: string
  /** The release; undefined for a deployed version that does not report it, for example because it is broken. */
  release: InstalledRelease | undefined
}

/**
 * Returns the release of all functions. If the functions are of different releases, a commit or its reversal was
 * interrupted. The functions whose aliases still have a share then identify the release before it; without such
 * functions, throws a final `TargetError`. Returns the version `unknown` if no function reports its release.
 */
export async function servingRelease(control: AliasControl, aliases: AliasStates): Promise<InstalledRelease> {
  const states: ServingFunction[] = []
  await forEachLimit(maxConcurrentCalls, control.names, async (name) => {
    const state = await aliases.readFresh(name)
    states.push({ ...state, name, release: await releaseOf(control, name, state.main) })
  })
  const knownStates = states.filter(({ release }) => release !== undefined)
  const releases = new Set(knownStates.map(({ release }) => `${release?.version} ${release?.digest}`))
  const [firstState] = releases.size <= 1 ? knownStates : knownStates.filter(({ other }) => other !== undefined)
  if (firstState?.release !== undefined) return firstState.release
  if (knownStates.length === 0) return { version: 'unknown' }
  const descriptions = knownStates.map(({ name, release }) => `${name} ${release?.version}`)
  throw new TargetError(`The functions are of different releases: ${descriptions.join(', ').slice(0, 400)}.`, {
    isFinal: true,
  })
}

/** Reads the release from the version's description, or invokes a deployed version to report it. */
async function releaseOf(control: AliasControl, name: string, number: string): Promise<InstalledRelease | undefined> {
  const cloudName = lambdaNameOf(control.prefix, name)
  const { configuration } = await getFunction(control, cloudName, number)
  const release = releaseIn(configuration)
  if (release !== undefined) return release
  const version = await reportedVersion(control, cloudName, number)
  return version === undefined ? undefined : { version }
}

/**
 * Finds the version of a function that belongs to a release. Versions of a deployed release have no label, so they are
 * invoked.
 */
export async function findVersionNumber(
  control: AliasControl,
  cloudName: string,
  release: InstalledRelease,
): Promise<string | undefined> {
  const label = labelOf(release)
  const versions = await newestVersions(control, cloudName)
  if (label !== undefined) return versions.find(({ Description }) => Description === label)?.Version
  const deployedVersions = versions.filter((version) => releaseIn(version) === undefined).slice(0, maxDeployedVersions)
  for (const { Version = '' } of deployedVersions) {
    if ((await reportedVersion(control, cloudName, Version)) === release.version) return Version
  }
  return undefined
}

async function newestVersions(control: AliasControl, cloudName: string): Promise<FunctionConfiguration[]> {
  const { published } = await getVersions(control, cloudName)
  return published.toSorted((a, b) => Number(b.Version) - Number(a.Version))
}

/** Older deployed versions are not rollback targets. */
const maxDeployedVersions = 5

/** Invokes a function's version to read its platform version. Returns undefined if it reports none. */
async function reportedVersion(control: AliasControl, cloudName: string, number: string): Promise<string | undefined> {
  const response = await invokeVersion(control, cloudName, number, probeEvent).catch((error: unknown) => {
    if (error instanceof TargetError) return undefined
    throw error
  })
  return ProbeResponse.safeParse(response).data?.version
}

/** Publishes a function of a release, or finds its published version. Returns the version, which can be invoked. */
export async function publish(control: AliasControl, release: StagedRelease, name: string): Promise<string> {
  const cloudName = lambdaNameOf(control.prefix, name)
  const number = (await findVersionNumber(control, cloudName, release)) ?? (await publishNew(control, release, name))
  await pollUntil(control, `${cloudName}:${number}`, async () => {
    const { configuration } = await getFunction(control, cloudName, number)
    if (configuration.State === 'Failed') throw brokenCodeError(cloudName, configuration)
    // Lambda deactivates a version that was not called for weeks. The next call fails and reactivates it.
    if (configuration.State === 'Inactive')
      await invokeVersion(control, cloudName, number, probeEvent).catch(() => undefined)
    return configuration.State === 'Pending' || configuration.State === 'Inactive' ? undefined : configuration
  })
  return number
}

/** Publishes a new version. Keeps no state: a retry derives the progress of an earlier attempt from the function. */
async function publishNew(control: AliasControl, release: StagedRelease, name: string): Promise<string> {
  const FunctionName = lambdaNameOf(control.prefix, name)
  const Description = labelOf(release)
  const ZipFile = await release.fetchFunction(name)
  const CodeSha256 = createHash('sha256').update(ZipFile).digest('base64')
  const latestConfiguration = await pollUntil(control, FunctionName, () =>
    latestWith(control, FunctionName, { ZipFile, CodeSha256 }),
  )
  // Publishes exactly the revision that was read: Lambda refuses if it has changed.
  const { RevisionId } = latestConfiguration
  const publishedVersion = await control.client.send(
    new PublishVersionCommand({ FunctionName, CodeSha256, RevisionId, Description }),
  )
  if (publishedVersion.Version === undefined || publishedVersion.Description !== Description) {
    throw new TargetError(`${FunctionName} has this code already, as ${publishedVersion.Description}.`, {
      isFinal: true,
    })
  }
  return publishedVersion.Version
}

/** Changes the code if necessary. Returns the function once it has the code, and undefined during the change. */
async function latestWith(
  control: AliasControl,
  FunctionName: string,
  { ZipFile, CodeSha256 }: { ZipFile: Uint8Array; CodeSha256: string },
): Promise<FunctionConfiguration | undefined> {
  const { configuration } = await getFunction(control, FunctionName)
  const isBusy = configuration.State === 'Pending' || configuration.LastUpdateStatus === 'InProgress'
  if (isBusy) return undefined
  if (configuration.CodeSha256 === CodeSha256) {
    if (configuration.LastUpdateStatus === 'Failed') throw brokenCodeError(FunctionName, configuration)
    return configuration
  }
  const { RevisionId } = configuration
  try {
    await control.client.send(new UpdateFunctionCodeCommand({ FunctionName, ZipFile, RevisionId }))
  } catch (error) {
    // Another change was made at the same time, or the response to the first try was lost. The next read shows the
    // result.
    if (!isAws(error, 'ResourceConflictException', 'PreconditionFailedException')) throw error
  }
  return undefined
}

const brokenCodeError = (name: string, { StateReason, LastUpdateStatusReason }: FunctionConfiguration) =>
  new TargetError(`Lambda cannot run ${name}: ${LastUpdateStatusReason ?? StateReason}`, { isFinal: true })

/**
 * Removes the versions of all updates except those of the retained releases. If this fails, the next update removes
 * them.
 */
export async function pruneVersions(
  control: AliasControl,
  name: string,
  retainedReleases: readonly InstalledRelease[],
): Promise<void> {
  const FunctionName = lambdaNameOf(control.prefix, name)
  const labels = new Set(retainedReleases.map(labelOf))
  try {
    for (const version of await newestVersions(control, FunctionName)) {
      if (releaseIn(version) === undefined || labels.has(version.Description)) continue
      await control.client.send(new DeleteFunctionCommand({ FunctionName, Qualifier: version.Version }))
    }
  } catch (cause) {
    log('warn', 'Failed to prune unused function versions', { functionName: FunctionName, cause })
  }
}
