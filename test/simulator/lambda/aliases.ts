import * as z from 'zod'
import type { JsonObject } from '@platform/local/emulators/http/request'
import { arnOf, latestVersion } from './address.ts'
import type { Alias, LambdaFunction } from './function.ts'
import { functionOf, type Lambda } from './lambda.ts'
import { named, operation, page, pageMembers } from './operation.ts'
import { requireRevision } from './readiness.ts'
import { conflict, invalidValue, notFound } from './refusals.ts'

const AliasName = z.string().regex(/^(?!\d+$)[\w-]{1,128}$/)
const one = { FunctionName: named.FunctionName, Name: AliasName }
const changeable = {
  FunctionVersion: z.string().regex(/^(?:\$LATEST|\d+)$/),
  Description: z.string().max(256).optional(),
  RoutingConfig: z
    .object({ AdditionalVersionWeights: z.record(z.string(), z.number().min(0).max(1)).default({}) })
    .optional(),
}

export const createAlias = operation(z.object({ ...one, ...changeable }), (lambda, request) => {
  const found = functionOf(lambda, request)
  if (found.aliases.has(request.Name)) throw conflict(`The alias ${request.Name} already exists.`)
  return put(found, {
    name: request.Name,
    version: request.FunctionVersion,
    description: request.Description ?? '',
    weights: request.RoutingConfig?.AdditionalVersionWeights ?? {},
  })
})

const UpdateRequest = z.object({
  ...one,
  ...changeable,
  FunctionVersion: changeable.FunctionVersion.optional(),
  RevisionId: z.string().optional(),
})

export const updateAlias = operation(UpdateRequest, (lambda, request) => {
  const found = functionOf(lambda, request)
  const alias = aliasOf(lambda, request)
  requireRevision(alias, request.RevisionId)
  return put(found, {
    ...alias,
    version: request.FunctionVersion ?? alias.version,
    description: request.Description ?? alias.description,
    weights: request.RoutingConfig?.AdditionalVersionWeights ?? alias.weights,
  })
})

export const getAlias = operation(z.object(one), (lambda, request) =>
  answerOf(request.FunctionName, aliasOf(lambda, request)),
)

export const deleteAlias = operation(z.object(one), (lambda, request) => {
  functionOf(lambda, request).aliases.delete(request.Name)
  return {}
})

export const listAliases = operation(
  z.object({ FunctionName: named.FunctionName, FunctionVersion: z.string().optional(), ...pageMembers }),
  (lambda, request) => {
    const { aliases, name } = functionOf(lambda, request)
    const { FunctionVersion: version } = request
    const asked = [...aliases.values()].filter((alias) => version === undefined || alias.version === version)
    const sorted = asked.toSorted((left, right) => (left.name < right.name ? -1 : 1))
    const { items, ...next } = page(sorted, (alias) => alias.name, request)
    return { Aliases: items.map((alias) => answerOf(name, alias)), ...next }
  },
)

function aliasOf(lambda: Lambda, request: { FunctionName: string; Name: string }): Alias {
  const { aliases, name } = functionOf(lambda, request)
  const alias = aliases.get(request.Name)
  if (alias === undefined) throw notFound(arnOf(name, request.Name))
  return alias
}

function put(found: LambdaFunction, alias: Omit<Alias, 'revisionId'>): JsonObject {
  const others = Object.keys(alias.weights)
  const missing = [alias.version, ...others].find(
    (version) => version !== latestVersion && !found.versions.has(version),
  )
  if (missing !== undefined) throw notFound(arnOf(found.name, missing))
  const hasLatest = alias.version === latestVersion || others.includes(latestVersion)
  if (others.length > 1 || others.includes(alias.version) || (others.length > 0 && hasLatest)) {
    throw invalidValue('An alias can only split traffic between two different published versions.')
  }
  const kept = { ...alias, revisionId: crypto.randomUUID() }
  found.aliases.set(alias.name, kept)
  return answerOf(found.name, kept)
}

const answerOf = (functionName: string, { name, version, description, weights, revisionId }: Alias): JsonObject => ({
  AliasArn: arnOf(functionName, name),
  Name: name,
  FunctionVersion: version,
  Description: description,
  RevisionId: revisionId,
  ...(Object.keys(weights).length > 0 && { RoutingConfig: { AdditionalVersionWeights: weights } }),
})

/** The version that an invocation of an alias gets for a random number from 0 to 1. */
export function chosenVersion({ version, weights }: Alias, random: number): string {
  const [[other, weight] = ['', 0]] = Object.entries(weights)
  return random < weight ? other : version
}
