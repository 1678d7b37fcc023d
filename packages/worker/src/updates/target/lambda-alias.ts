import { LambdaClient, type LambdaClientConfig } from '@aws-sdk/client-lambda'
import { forEachLimit } from '@platform/core/lib/async'
import { functionNames, isSingleVersion } from '@platform/core/updates/function-names'
import { type InstalledRelease } from '@platform/core/updates/record'
import { maxConcurrentCalls, findFunction, invokeVersion, type LambdaControl, targetFailure } from './lambda-control.ts'
import { servingRelease } from './lambda-current.ts'
import { cloudNameOf, releaseIn } from './lambda-names.ts'
import { readAliases, type AliasStates } from './lambda-aliases.ts'
import { findNumber, pruneVersions, publish } from './lambda-versions.ts'
import { TargetError, type UpdateTarget } from './port.ts'

/** What the platform's functions are in Lambda. */
export interface LambdaAliasSettings
  extends Pick<LambdaControl, 'prefix' | 'alias'>, Partial<Pick<LambdaControl, 'names' | 'pollMs' | 'patienceMs'>> {
  /** Where Lambda is, and who asks; the environment says so by default. */
  aws?: LambdaClientConfig
}

/** A zip of some megabytes is on its way for a while, and a smoke call may take half a minute. */
const patient = { connectionTimeout: 1000, requestTimeout: 30_000, throwOnRequestTimeout: true } as const

/**
 * The platform as functions of Lambda that are called by one alias each (D51). A release is a version of each of them; the
 * alias gives it its share. For one try of an update: an alias that somebody else moves meanwhile is left alone.
 */
export function lambdaAlias({ aws = {}, ...settings }: LambdaAliasSettings): UpdateTarget {
  const client = new LambdaClient({ requestHandler: patient, maxAttempts: 6, retryMode: 'adaptive', ...aws })
  const control: LambdaControl = { names: functionNames, pollMs: 500, patienceMs: 60_000, ...settings, client }
  const work: Work = { control, places: readAliases(control), numbers: new Map() }
  return {
    current: () => told(() => servingRelease(control, work.places)),
    stage: (release) =>
      told(() =>
        forEachLimit(maxConcurrentCalls, release.functionNames, async (name) => {
          work.numbers.set(keyOf(name, release), await publish(control, release, name))
        }),
      ),
    invoke: (release, name, event) =>
      told(async () =>
        invokeVersion(control, cloudNameOf(control.prefix, name), await numberOf(work, name, release), event),
      ),
    // CloudWatch alone knows, and minutes later: an update is not told. docs/operations.md says what to watch instead.
    unanswered: async () => undefined,
    shift: (release, share, isBack) => told(() => shift(work, release, share / 100, isBack)),
    commit: (release, before) => told(() => commit(work, release, before)),
    revert: (release, before) => told(() => revert(work, release, before)),
  }
}

interface Work {
  control: LambdaControl
  places: AliasStates
  /** Function and release → version, as far as they are known. */
  numbers: Map<string, string>
}

const keyOf = (name: string, { version, digest = '' }: InstalledRelease): string => `${name} ${version} ${digest}`

async function told<Result>(perform: () => Promise<Result>): Promise<Result> {
  try {
    return await perform()
  } catch (error) {
    throw targetFailure(error)
  }
}

async function lookUp(work: Work, name: string, release: InstalledRelease): Promise<string | undefined> {
  const { control, numbers } = work
  const key = keyOf(name, release)
  const number = numbers.get(key) ?? (await findNumber(control, cloudNameOf(control.prefix, name), release))
  if (number !== undefined) numbers.set(key, number)
  return number
}

/** Whether a version is of a release; of one that was deployed is whatever no update has made. */
async function isOf(work: Work, name: string, number: string, release: InstalledRelease): Promise<boolean> {
  if (release.digest !== undefined) return (await lookUp(work, name, release)) === number
  const found = await findFunction(work.control, cloudNameOf(work.control.prefix, name), number)
  return releaseIn(found) === undefined
}

const strange = (name: string, number: string) =>
  new TargetError(`${name} leads to its version ${number}, which is of another release. It is left as it is.`, {
    isFinal: true,
  })

async function numberOf(work: Work, name: string, release: InstalledRelease): Promise<string> {
  const number = await lookUp(work, name, release)
  if (number !== undefined) return number
  throw new TargetError(`${name} has no version of release ${release.version}.`, { isFinal: true })
}

/** Does some work for each function, for those that are undivided before all others or after them. */
async function inTurns(
  names: readonly string[],
  undivided: 'first' | 'last',
  perform: (name: string) => Promise<void>,
) {
  const { first = [], last = [] } = Object.groupBy(names, (name) =>
    isSingleVersion(name) === (undivided === 'first') ? 'first' : 'last',
  )
  await forEachLimit(maxConcurrentCalls, first, perform)
  await forEachLimit(maxConcurrentCalls, last, perform)
}

async function shift(work: Work, release: InstalledRelease, weight: number, isBack = false): Promise<void> {
  await inTurns(work.control.names, isBack || weight < 1 ? 'first' : 'last', async (name) => {
    const own = isSingleVersion(name) ? Math.floor(weight) : weight
    const other = await numberOf(work, name, release)
    const { main } = await work.places.seen(name)
    if (main === other) return
    await work.places.move(name, own === 0 ? { main, weight: 0 } : { main, other, weight: own })
  })
}

/** Those that are undivided come first, so that the shares of the others tell until the end that it is not done. */
async function commit(work: Work, release: InstalledRelease, before: InstalledRelease): Promise<void> {
  await inTurns(work.control.names, 'first', async (name) =>
    work.places.move(name, { main: await numberOf(work, name, release), weight: 0 }),
  )
  await forEachLimit(maxConcurrentCalls, work.control.names, (name) =>
    pruneVersions(work.control, name, [release, before]),
  )
}

/**
 * The functions that lead to the release alone come first: a commit that was cut off is told from one that is done by the
 * shares that are left.
 */
async function revert(work: Work, release: InstalledRelease, before: InstalledRelease): Promise<void> {
  const { control, places } = work
  const refusals: unknown[] = []
  const eachSafely = (perform: (name: string) => Promise<void>) =>
    inTurns(control.names, 'first', async (name) => {
      try {
        await perform(name)
      } catch (error) {
        // What somebody else has changed keeps nothing else from going back.
        if (!(error instanceof TargetError) || !error.isFinal) throw error
        refusals.push(error)
      }
    })
  await eachSafely(async (name) => {
    const { main } = await places.seen(name)
    if (main !== (await lookUp(work, name, release))) return
    await places.move(name, { main: await numberOf(work, name, before), weight: 0 })
  })
  await eachSafely(async (name) => {
    const { main } = await places.seen(name)
    await places.move(name, { main, weight: 0 })
    if (!(await isOf(work, name, main, before))) throw strange(name, main)
  })
  if (refusals.length > 0) throw refusals[0]
}
