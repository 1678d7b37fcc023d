import { arnOf, addressOf, latestVersion } from './address.ts'
import type { CodeFinder } from './code.ts'
import type { Fleet } from './fleet.ts'
import type { LambdaFunction, Revision } from './function.ts'
import { notFound } from './refusals.ts'
import type { Settling } from './settling.ts'

/** All that operations work on. */
export interface Lambda {
  functions: Map<string, LambdaFunction>
  fleet: Fleet
  settling: Settling
  findCode: CodeFinder
  /** From 0 to 1: which version of an alias an invocation gets. */
  random: () => number
}

/** How a call names a function. */
export interface NamedFunction {
  FunctionName: string
  Qualifier?: string | undefined
}

/** The function of a name or an ARN. */
export function functionOf({ functions }: Lambda, { FunctionName }: NamedFunction): LambdaFunction {
  const { name } = addressOf(FunctionName)
  const found = functions.get(name)
  if (found === undefined) throw notFound(arnOf(name))
  return found
}

/** What a call means by a function and its qualifier: `$LATEST`, a version, or the main version of an alias. */
export function revisionOf(lambda: Lambda, named: NamedFunction): Revision {
  const { name, qualifier = latestVersion } = addressOf(named.FunctionName, named.Qualifier)
  const found = functionOf(lambda, named)
  const version = found.aliases.get(qualifier)?.version ?? qualifier
  const revision = version === latestVersion ? found.latest : found.versions.get(version)
  if (revision === undefined) throw notFound(arnOf(name, qualifier))
  return revision
}
