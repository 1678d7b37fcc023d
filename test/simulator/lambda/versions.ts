import * as z from 'zod'
import { arnOf, latestVersion } from './address.ts'
import { configurationOf, type LambdaFunction, listedOf, newRevision, type Revision } from './function.ts'
import { functionOf, type Lambda } from './lambda.ts'
import { named, operation, page, pageMembers } from './operation.ts'
import { activateLater, requireRevision, requireSettled } from './readiness.ts'
import { conflict, invalidValue, notFound } from './refusals.ts'

const PublishRequest = z.object({
  FunctionName: named.FunctionName,
  Description: z.string().max(256).optional(),
  CodeSha256: z.string().optional(),
  RevisionId: z.string().optional(),
})

export const publishVersion = operation(PublishRequest, (lambda, request) => {
  const found = functionOf(lambda, request)
  requireSettled(found)
  requireRevision(found.latest, request.RevisionId)
  requireSound(found.latest)
  if (request.CodeSha256 !== undefined && request.CodeSha256 !== found.latest.code.sha256) {
    throw invalidValue('CodeSha256 is not that of the code.')
  }
  return configurationOf(addVersion(lambda, found, request.Description))
})

function requireSound({ functionName, state, lastUpdate }: Revision): void {
  if (state === 'Failed' || lastUpdate === 'Failed') throw conflict(`${arnOf(functionName)} has failed.`)
}

/** Publishes `$LATEST`; returns the last version if nothing has changed. */
export function addVersion(lambda: Lambda, found: LambdaFunction, description: string | undefined): Revision {
  const { latest, versions, name } = found
  const last = [...versions.values()].at(-1)
  if (last !== undefined && contentOf(last) === contentOf(latest)) return last
  const version = String(++found.versionsMade)
  const settings = { ...latest.settings, ...(description !== undefined && { Description: description }) }
  const revision = newRevision({ functionName: name, version, settings, code: latest.code, state: 'Pending' })
  versions.set(version, revision)
  activateLater(lambda, revision)
  return revision
}

const contentOf = ({ code, settings }: Revision): string =>
  JSON.stringify([code.sha256, { ...settings, Description: '' }])

export async function removeVersion(lambda: Lambda, found: LambdaFunction, version: string): Promise<void> {
  if (version === latestVersion) throw invalidValue('$LATEST can only be deleted with its function.')
  const revision = found.versions.get(version)
  if (revision === undefined) throw notFound(arnOf(found.name, version))
  const alias = [...found.aliases.values()].find((one) => one.version === version || version in one.weights)
  if (alias !== undefined) throw conflict(`The alias ${alias.name} refers to version ${version}.`)
  found.versions.delete(version)
  await lambda.fleet.retire(revision)
}

export const listVersions = operation(
  z.object({ FunctionName: named.FunctionName, ...pageMembers }),
  (lambda, request) => {
    const { latest, versions } = functionOf(lambda, request)
    const { items, ...next } = page([latest, ...versions.values()], placeOf, request)
    return { Versions: items.map(listedOf), ...next }
  },
)

const placeOf = ({ version }: Revision): string => (version === latestVersion ? '0' : version).padStart(12, '0')
