import { arnOf, addressOf, latestVersion } from './address.ts'
import type { CodeFinder } from './code.ts'
import type { Fleet } from './fleet.ts'
import type { LambdaFunction, Revision } from './function.ts'
import { notFound } from './refusals.ts'
import type { Settling } from './settling.ts'

export interface Lambda {
  functions: Map<string, LambdaFunction>
  fleet: Fleet
  settling: Settling
  findCode: CodeFinder
  /** Random number from 0 to 1 that selects the version of an alias. */
  random: () => number
}

export interface NamedFunction {
  FunctionName: string
  Qualifier?: string | undefined
}

export function functionOf({ functions }: Lambda, { FunctionName }: NamedFunction): LambdaFunction {
  const { name } = addressOf(FunctionName)
  const found = functions.get(name)
  if (found === undefined) throw notFound(arnOf(name))
  return found
}

/** Resolves `$LATEST`, a version, or the main version of an alias. */
export function revisionOf(lambda: Lambda, named: NamedFunction): Revision {
  const { name, qualifier = latestVersion } = addressOf(named.FunctionName, named.Qualifier)
  const found = functionOf(lambda, named)
  const version = found.aliases.get(qualifier)?.version ?? qualifier
  const revision = version === latestVersion ? found.latest : found.versions.get(version)
  if (revision === undefined) throw notFound(arnOf(name, qualifier))
  return revision
}
