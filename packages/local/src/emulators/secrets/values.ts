import * as z from 'zod'
import { headOf, operation, SecretId, valueMembers } from './operation.ts'
import { invalidRequestError, notFoundError } from './errors.ts'
import { addVersion, hasValue, type Secret, secondsPerDay, versionIdAt } from './secret.ts'
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
    if (!hasValue(request)) throw invalidRequestError('You must provide either SecretString or SecretBinary.')
    return secrets.change(secrets.find(request.SecretId), (secret) => {
      const id = addVersion(secret, request, request.VersionStages, secrets.now())
      return { ...headOf(secret), VersionId: id, VersionStages: secret.versions[id]?.VersionStages }
    })
  },
)

function readValue(secrets: SecretStore, secretId: string, reference: VersionReference) {
  const secret = secrets.find(secretId)
  const id = versionIdOf(secret, reference)
  const version = secret.versions[id]!
  secret.LastAccessedDate = Math.floor(secrets.now() / secondsPerDay) * secondsPerDay
  return { ...headOf(secret), VersionId: id, ...version }
}

/** The id and the stage must match if both are given. The stage is AWSCURRENT if both are absent. */
function versionIdOf(secret: Secret, { VersionId: id, VersionStage: stage }: VersionReference): string {
  const versionId = id ?? versionIdAt(secret, stage ?? 'AWSCURRENT')
  if (versionId === undefined || secret.versions[versionId] === undefined) {
    const requestedVersion = id === undefined ? `staging label: ${stage ?? 'AWSCURRENT'}` : `VersionId: ${id}`
    throw notFoundError(`Secrets Manager can't find the specified secret value for ${requestedVersion}`)
  }
  if (stage !== undefined && !secret.versions[versionId].VersionStages.includes(stage)) {
    throw invalidRequestError('You provided a VersionStage that is not associated to the provided VersionId.')
  }
  return versionId
}
