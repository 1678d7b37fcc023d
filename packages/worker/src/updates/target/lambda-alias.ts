import { LambdaClient, type LambdaClientConfig } from '@aws-sdk/client-lambda'
import { forEachLimit } from '@platform/core/lib/async'
import { functionNames, isSingleVersion } from '@platform/core/updates/function-names'
import type { InstalledRelease } from '@platform/core/updates/record'
import { getFunction } from '../../runtimes/lambda/control.ts'
import {
  type AliasControl,
  lambdaNameOf,
  invokeVersion,
  maxConcurrentCalls,
  releaseIn,
  targetFailure,
} from './lambda-functions.ts'
import { servingRelease, findVersionNumber, pruneVersions, publish } from './lambda-versions.ts'
import { createAliasStates, type AliasStates } from './lambda-aliases.ts'
import { TargetError, type UpdateTarget } from './port.ts'

export interface LambdaAliasSettings
  extends Pick<AliasControl, 'prefix' | 'alias'>, Partial<Pick<AliasControl, 'names' | 'pollMs' | 'timeoutMs'>> {
  /** Endpoint and credentials of Lambda; from the environment by default. */
  aws?: LambdaClientConfig
}

/** The upload of a zip of several megabytes takes time, and a smoke test call may take half a minute. */
const requestHandler = { connectionTimeout: 1000, requestTimeout: 30_000, throwOnRequestTimeout: true } as const

/**
 * Creates the target for a platform of Lambda functions that are called through aliases. A release is a version of each
 * function; the alias sets its share. A target is for one update attempt and overwrites no changes by others.
 */
export function lambdaAlias({ aws = {}, ...settings }: LambdaAliasSettings): UpdateTarget {
  const client = new LambdaClient({ requestHandler, maxAttempts: 6, retryMode: 'adaptive', ...aws })
  const control: AliasControl = { names: functionNames, pollMs: 500, timeoutMs: 60_000, ...settings, client }
  const work: Work = { control, aliases: createAliasStates(control), numbers: new Map() }
  return {
    current: () => withTargetErrors(() => servingRelease(control, work.aliases)),
    stage: (release) =>
      withTargetErrors(() =>
        forEachLimit(maxConcurrentCalls, release.functionNames, async (name) => {
          work.numbers.set(keyOf(name, release), await publish(control, release, name))
        }),
      ),
    invoke: (release, name, event) =>
      withTargetErrors(async () =>
        invokeVersion(control, lambdaNameOf(control.prefix, name), await requireVersion(work, name, release), event),
      ),
    // CloudWatch reports invocations without a response only minutes later, so updates do not count them.
    // docs/operations.md names the metric to watch.
    unanswered: async () => undefined,
    shift: (release, share, isBack) => withTargetErrors(() => shift(work, release, share / 100, isBack)),
    commit: (release, before) => withTargetErrors(() => commit(work, release, before)),
    revert: (release, before) => withTargetErrors(() => revert(work, release, before)),
  }
}

interface Work {
  control: AliasControl
  aliases: AliasStates
  /** Known versions by function and release. */
  numbers: Map<string, string>
}

const keyOf = (name: string, { version, digest = '' }: InstalledRelease): string => `${name} ${version} ${digest}`

async function withTargetErrors<Result>(perform: () => Promise<Result>): Promise<Result> {
  try {
    return await perform()
  } catch (error) {
    throw targetFailure(error)
  }
}

async function findVersion(work: Work, name: string, release: InstalledRelease): Promise<string | undefined> {
  const { control, numbers } = work
  const key = keyOf(name, release)
  const number = numbers.get(key) ?? (await findVersionNumber(control, lambdaNameOf(control.prefix, name), release))
  if (number !== undefined) numbers.set(key, number)
  return number
}

/**
 * Whether a version belongs to a release. A version that no update has published counts as part of a deployed release.
 */
async function belongsTo(work: Work, name: string, number: string, release: InstalledRelease): Promise<boolean> {
  if (release.digest !== undefined) return (await findVersion(work, name, release)) === number
  const currentFunction = await getFunction(work.control, lambdaNameOf(work.control.prefix, name), number)
  return releaseIn(currentFunction.configuration) === undefined
}

const foreignVersionError = (name: string, number: string) =>
  new TargetError(`${name} uses version ${number}, which belongs to another release. It is left unchanged.`, {
    isFinal: true,
  })

async function requireVersion(work: Work, name: string, release: InstalledRelease): Promise<string> {
  const number = await findVersion(work, name, release)
  if (number !== undefined) return number
  throw new TargetError(`${name} has no version of release ${release.version}.`, { isFinal: true })
}

/** Runs the work for each function, for single-version functions before or after all others. */
async function forEachInOrder(
  names: readonly string[],
  singleVersions: 'first' | 'last',
  perform: (name: string) => Promise<void>,
) {
  const { first = [], last = [] } = Object.groupBy(names, (name) =>
    isSingleVersion(name) === (singleVersions === 'first') ? 'first' : 'last',
  )
  await forEachLimit(maxConcurrentCalls, first, perform)
  await forEachLimit(maxConcurrentCalls, last, perform)
}

async function shift(work: Work, release: InstalledRelease, weight: number, isBack = false): Promise<void> {
  await forEachInOrder(work.control.names, isBack || weight < 1 ? 'first' : 'last', async (name) => {
    const share = isSingleVersion(name) ? Math.floor(weight) : weight
    const nextVersion = await requireVersion(work, name, release)
    const { main } = await work.aliases.readCached(name)
    if (main === nextVersion) return
    await work.aliases.move(name, share === 0 ? { main, weight: 0 } : { main, other: nextVersion, weight: share })
  })
}

/** Single-version functions go first, so that the shares of the others show an incomplete commit until the end. */
async function commit(work: Work, release: InstalledRelease, before: InstalledRelease): Promise<void> {
  await forEachInOrder(work.control.names, 'first', async (name) =>
    work.aliases.move(name, { main: await requireVersion(work, name, release), weight: 0 }),
  )
  await forEachLimit(maxConcurrentCalls, work.control.names, (name) =>
    pruneVersions(work.control, name, [release, before]),
  )
}

/**
 * Functions with all traffic on the release go first: the remaining shares distinguish an interrupted commit from a
 * completed one.
 */
async function revert(work: Work, release: InstalledRelease, before: InstalledRelease): Promise<void> {
  const { control, aliases } = work
  const errors: unknown[] = []
  const forEachFunction = (perform: (name: string) => Promise<void>) =>
    forEachInOrder(control.names, 'first', async (name) => {
      try {
        await perform(name)
      } catch (error) {
        // A function that was changed outside of this update must not prevent the revert of the other functions.
        if (!(error instanceof TargetError) || !error.isFinal) throw error
        errors.push(error)
      }
    })
  await forEachFunction(async (name) => {
    const { main } = await aliases.readCached(name)
    if (main !== (await findVersion(work, name, release))) return
    await aliases.move(name, { main: await requireVersion(work, name, before), weight: 0 })
  })
  await forEachFunction(async (name) => {
    const { main } = await aliases.readCached(name)
    await aliases.move(name, { main, weight: 0 })
    if (!(await belongsTo(work, name, main, before))) throw foreignVersionError(name, main)
  })
  if (errors.length > 0) throw errors[0]
}
