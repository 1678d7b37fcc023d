import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { invalidParameterError, resourceExistsError } from './errors.ts'

const Tag = z.object({ Key: z.string(), Value: z.string() })

const Version = z.object({
  SecretString: z.string().optional(),
  /** Base64. */
  SecretBinary: z.string().optional(),
  CreatedDate: z.number(),
  VersionStages: z.array(z.string()),
})

/** A stored secret: the members of the AWS API, with dates in seconds since 1970, and all versions by id. */
export const Secret = z.object({
  ARN: z.string(),
  Name: z.string(),
  Description: z.string().optional(),
  KmsKeyId: z.string().optional(),
  Tags: z.array(Tag).optional(),
  CreatedDate: z.number(),
  LastChangedDate: z.number(),
  LastAccessedDate: z.number().optional(),
  /** Time at which the deletion was requested. */
  DeletedDate: z.number().optional(),
  /** Time at which the secret is deleted. */
  DeletionDate: z.number().optional(),
  versions: z.record(z.string(), Version),
})
export type Secret = z.infer<typeof Secret>

export interface SecretValue {
  SecretString?: string | undefined
  SecretBinary?: string | undefined
  ClientRequestToken?: string | undefined
}

export const secondsPerDay = 86_400

const maxUnlabelledVersions = 100

export const hasValue = (value: SecretValue): boolean =>
  value.SecretString !== undefined || value.SecretBinary !== undefined

export function versionIdAt(secret: Secret, stage: string): string | undefined {
  return Object.keys(secret.versions).find((id) => secret.versions[id]?.VersionStages.includes(stage))
}

/** Omits deprecated versions, which have no stage. */
export function stagesById(secret: Secret): Record<string, string[]> {
  const labelledVersions = Object.entries(secret.versions).filter(([, version]) => version.VersionStages.length > 0)
  return Object.fromEntries(labelledVersions.map(([id, version]) => [id, version.VersionStages]))
}

/** Adds a version with the request token as its id. The same token with the same value changes nothing. */
export function addVersion(secret: Secret, value: SecretValue, stages: readonly string[], now: number): string {
  const { SecretString, SecretBinary, ClientRequestToken: id = randomUUID() } = value
  if (SecretString !== undefined && SecretBinary !== undefined) {
    throw invalidParameterError('You must provide only one of SecretString or SecretBinary.')
  }
  const existingVersion = secret.versions[id]
  if (existingVersion !== undefined) {
    if (existingVersion.SecretString === SecretString && existingVersion.SecretBinary === SecretBinary) return id
    throw resourceExistsError(`The operation failed because the secret version ${id} already exists.`)
  }
  const isFirst = Object.keys(secret.versions).length === 0
  secret.versions[id] = { SecretString, SecretBinary, CreatedDate: now, VersionStages: [] }
  for (const stage of new Set(isFirst ? ['AWSCURRENT', ...stages] : stages)) moveStage(secret, stage, id)
  removeOldVersions(secret)
  return id
}

/** If `to` is undefined, removes the stage. The version that loses AWSCURRENT becomes AWSPREVIOUS. */
function moveStage(secret: Secret, stage: string, to: string | undefined): void {
  const from = versionIdAt(secret, stage)
  if (from === to) return
  if (from !== undefined) {
    const version = secret.versions[from]!
    version.VersionStages = version.VersionStages.filter((each) => each !== stage)
  }
  if (to !== undefined) secret.versions[to]!.VersionStages.push(stage)
  if (stage === 'AWSCURRENT' && from !== undefined) moveStage(secret, 'AWSPREVIOUS', from)
}

function removeOldVersions(secret: Secret) {
  const unlabelledIds = Object.keys(secret.versions).filter((id) => secret.versions[id]?.VersionStages.length === 0)
  for (const id of unlabelledIds.slice(0, -maxUnlabelledVersions)) delete secret.versions[id]
}
