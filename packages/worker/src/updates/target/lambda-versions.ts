import { createHash } from 'node:crypto'
import {
  DeleteFunctionCommand,
  type FunctionConfiguration,
  PublishVersionCommand,
  UpdateFunctionCodeCommand,
} from '@aws-sdk/client-lambda'
import { isAws } from '@platform/core/aws/error-name'
import { log } from '@platform/core/log'
import { ProbeAnswer, probeEvent } from '@platform/core/updates/version-probe'
import { type InstalledRelease } from '@platform/core/updates/record'
import { findFunction, invokeVersion, type LambdaControl, until, versionsOf } from './lambda-control.ts'
import { cloudNameOf, labelOf, releaseIn } from './lambda-names.ts'
import { type StagedRelease, TargetError } from './port.ts'

/**
 * The version of a function that is of a release; undefined where there is none. One call; a few more where the release was
 * deployed, whose versions say nothing and are asked.
 */
export async function findNumber(
  control: LambdaControl,
  cloudName: string,
  release: InstalledRelease,
): Promise<string | undefined> {
  const label = labelOf(release)
  const versions = await versionsOf(control, cloudName)
  if (label !== undefined) return versions.find(({ Description }) => Description === label)?.Version
  const deployed = versions.filter((version) => releaseIn(version) === undefined).slice(0, deployedLimit)
  for (const { Version = '' } of deployed) {
    if ((await reportedVersion(control, cloudName, Version)) === release.version) return Version
  }
  return undefined
}

/** What was deployed longer ago is nothing to go back to. */
const deployedLimit = 5

/** The version of the platform that a version of a function says it is of; undefined where it says nothing. */
export async function reportedVersion(
  control: LambdaControl,
  cloudName: string,
  number: string,
): Promise<string | undefined> {
  const answer = await invokeVersion(control, cloudName, number, probeEvent).catch((error: unknown) => {
    if (error instanceof TargetError) return undefined
    throw error
  })
  return ProbeAnswer.safeParse(answer).data?.version
}

/** Publishes a function of a release, or finds it published. Answers its version, which can be invoked. */
export async function publish(control: LambdaControl, release: StagedRelease, name: string): Promise<string> {
  const cloudName = cloudNameOf(control.prefix, name)
  const number = (await findNumber(control, cloudName, release)) ?? (await make(control, release, name))
  await until(control, `${cloudName}:${number}`, async () => {
    const found = await findFunction(control, cloudName, number)
    if (found.State === 'Failed') throw brokenCode(cloudName, found)
    // What nobody has called for weeks sleeps; the first call fails, and wakes it.
    if (found.State === 'Inactive') await invokeVersion(control, cloudName, number, probeEvent).catch(() => undefined)
    return found.State === 'Pending' || found.State === 'Inactive' ? undefined : found
  })
  return number
}

/** Nothing is remembered in between: whoever comes next finds out from the function how far another one came. */
async function make(control: LambdaControl, release: StagedRelease, name: string): Promise<string> {
  const FunctionName = cloudNameOf(control.prefix, name)
  const Description = labelOf(release)
  const ZipFile = await release.fetchFunction(name)
  const CodeSha256 = createHash('sha256').update(ZipFile).digest('base64')
  const latest = await until(control, FunctionName, () => latestWith(control, FunctionName, { ZipFile, CodeSha256 }))
  // Exactly what was found is published: Lambda refuses where it has changed meanwhile.
  const { RevisionId } = latest
  const made = await control.client.send(
    new PublishVersionCommand({ FunctionName, CodeSha256, RevisionId, Description }),
  )
  if (made.Version === undefined || made.Description !== Description) {
    throw new TargetError(`${FunctionName} has this code already, as ${made.Description}.`, { isFinal: true })
  }
  return made.Version
}

/** The function once its code is what it has to be; undefined while it is on the way there. */
async function latestWith(
  control: LambdaControl,
  FunctionName: string,
  { ZipFile, CodeSha256 }: { ZipFile: Uint8Array; CodeSha256: string },
): Promise<FunctionConfiguration | undefined> {
  const found = await findFunction(control, FunctionName)
  const isBusy = found.State === 'Pending' || found.LastUpdateStatus === 'InProgress'
  if (isBusy) return undefined
  if (found.CodeSha256 === CodeSha256) {
    if (found.LastUpdateStatus === 'Failed') throw brokenCode(FunctionName, found)
    return found
  }
  const { RevisionId } = found
  try {
    await control.client.send(new UpdateFunctionCodeCommand({ FunctionName, ZipFile, RevisionId }))
  } catch (error) {
    // Somebody else changes it, or the answer to the first try was lost: the next look tells.
    if (!isAws(error, 'ResourceConflictException', 'PreconditionFailedException')) throw error
  }
  return undefined
}

const brokenCode = (name: string, { StateReason, LastUpdateStatusReason }: FunctionConfiguration) =>
  new TargetError(`Lambda cannot run ${name}: ${LastUpdateStatusReason ?? StateReason}`, { isFinal: true })

/** Removes what updates have published and nothing goes back to; what is left the next update removes. */
export async function pruneVersions(
  control: LambdaControl,
  name: string,
  kept: readonly InstalledRelease[],
): Promise<void> {
  const FunctionName = cloudNameOf(control.prefix, name)
  const labels = new Set(kept.map(labelOf))
  try {
    for (const version of await versionsOf(control, FunctionName)) {
      if (releaseIn(version) === undefined || labels.has(version.Description)) continue
      await control.client.send(new DeleteFunctionCommand({ FunctionName, Qualifier: version.Version }))
    }
  } catch (cause) {
    log('warn', 'Versions of a function that nobody needs could not be removed', { functionName: FunctionName, cause })
  }
}
