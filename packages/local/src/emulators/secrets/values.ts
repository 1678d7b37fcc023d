import * as z from 'zod'
import { headOf, operation, page, pageMembers, SecretId, valueMembers } from './operation.ts'
import { invalidParameter, invalidRequest, notFound } from './errors.ts'
import { addVersion, hasValue, moveStage, type Secret, secondsPerDay, versionAt } from './secret.ts'
import type { SecretStore } from './store.ts'

interface VersionReference {
  VersionId?: string | undefined
  VersionStage?: string | undefined
}

export const getSecretValue = operation(
  z.object({ SecretId, VersionId: z.string().optional(), VersionStage: z.string().optional() }),
  (secrets, request) => readValue(secrets, request.SecretId, request),
)

export const putSecretValue = operation(
  z.object({ SecretId, ...valueMembers, VersionStages: z.array(z.string()).min(1).max(20).default(['AWSCURRENT']) }),
  (secrets, request) => {
    if (!hasValue(request)) throw invalidRequest('You must provide either SecretString or SecretBinary.')
    return secrets.change(secrets.find(request.SecretId), (secret) => {
      const id = addVersion(secret, request, request.VersionStages, secrets.now())
      return { ...headOf(secret), VersionId: id, VersionStages: secret.versions[id]?.VersionStages }
    })
  },
)

export const updateSecret = operation(
  z.object({ SecretId, ...valueMembers, Description: z.string().optional(), KmsKeyId: z.string().optional() }),
  (secrets, request) =>
    secrets.change(secrets.find(request.SecretId), (secret) => {
      secret.Description = request.Description ?? secret.Description
      secret.KmsKeyId = request.KmsKeyId ?? secret.KmsKeyId
      if (!hasValue(request)) return headOf(secret)
      return { ...headOf(secret), VersionId: addVersion(secret, request, ['AWSCURRENT'], secrets.now()) }
    }),
)

export const updateSecretVersionStage = operation(
  z.object({
    SecretId,
    VersionStage: z.string().min(1),
    RemoveFromVersionId: z.string().optional(),
    MoveToVersionId: z.string().optional(),
  }),
  (secrets, { SecretId: secretId, VersionStage: stage, RemoveFromVersionId: from, MoveToVersionId: to }) =>
    secrets.change(secrets.find(secretId), (secret) => {
      if (to !== undefined && secret.versions[to] === undefined) throw notFound()
      if (to === undefined && stage === 'AWSCURRENT')
        throw invalidParameter('AWSCURRENT can be moved, but not removed.')
      const current = versionAt(secret, stage)
      if (from !== current && !(from === undefined && current === to)) {
        throw invalidParameter(`RemoveFromVersionId must name the version that ${stage} is attached to.`)
      }
      moveStage(secret, stage, to)
      return headOf(secret)
    }),
)

export const listSecretVersionIds = operation(
  z.object({ SecretId, ...pageMembers, IncludeDeprecated: z.boolean().default(false) }),
  (secrets, request) => {
    const secret = secrets.find(request.SecretId)
    const versions = Object.entries(secret.versions)
      .filter(([, version]) => request.IncludeDeprecated || version.VersionStages.length > 0)
      .map(([id, { VersionStages, CreatedDate }]) => ({ VersionId: id, VersionStages, CreatedDate }))
    const { items, ...next } = page(versions, request)
    return { ...headOf(secret), Versions: items, ...next }
  },
)

function readValue(secrets: SecretStore, secretId: string, reference: VersionReference) {
  const secret = secrets.find(secretId)
  const id = versionIdOf(secret, reference)
  const version = secret.versions[id]!
  secret.LastAccessedDate = Math.floor(secrets.now() / secondsPerDay) * secondsPerDay
  return { ...headOf(secret), VersionId: id, ...version }
}

/** The version of an id, of a stage, of both if they match, or the current one. */
function versionIdOf(secret: Secret, { VersionId: id, VersionStage: stage }: VersionReference): string {
  const found = id ?? versionAt(secret, stage ?? 'AWSCURRENT')
  if (found === undefined || secret.versions[found] === undefined) {
    const requested = id === undefined ? `staging label: ${stage ?? 'AWSCURRENT'}` : `VersionId: ${id}`
    throw notFound(`Secrets Manager can't find the specified secret value for ${requested}`)
  }
  if (stage !== undefined && !secret.versions[found].VersionStages.includes(stage)) {
    throw invalidRequest('You provided a VersionStage that is not associated to the provided VersionId.')
  }
  return found
}
