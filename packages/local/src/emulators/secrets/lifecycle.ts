import { randomInt } from 'node:crypto'
import * as z from 'zod'
import { headOf, operation, SecretId, Tags, valueMembers } from './operation.ts'
import { invalidParameterError, invalidRequestError, resourceExistsError } from './errors.ts'
import { addVersion, hasValue, type Secret, secondsPerDay, type SecretValue } from './secret.ts'
import type { SecretStore } from './store.ts'

const accountId = '000000000000'

const suffixCharacters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

const defaultRecoveryDays = 30

export const createSecret = (region: string) =>
  operation(
    z.object({
      Name: z.string().regex(/^[\w/+=.@-]{1,512}$/),
      Description: z.string().optional(),
      KmsKeyId: z.string().optional(),
      Tags: Tags.optional(),
      ...valueMembers,
    }),
    (secrets, request) => {
      const existingSecret = secrets.lookUp(request.Name)
      if (existingSecret !== undefined) return repeatCreation(secrets, existingSecret, request)
      const { Name, Description, KmsKeyId, Tags: tags } = request
      const now = secrets.now()
      const ARN = `arn:aws:secretsmanager:${region}:${accountId}:secret:${Name}-${randomSuffix()}`
      const dates = { CreatedDate: now, LastChangedDate: now }
      const secret: Secret = { ARN, Name, Description, KmsKeyId, Tags: tags, ...dates, versions: {} }
      const version = hasValue(request) ? { VersionId: addVersion(secret, request, ['AWSCURRENT'], now) } : {}
      secrets.add(secret)
      return { ...headOf(secret), ...version }
    },
  )

export const deleteSecret = operation(
  z.object({
    SecretId,
    RecoveryWindowInDays: z.int().min(7).max(30).optional(),
    ForceDeleteWithoutRecovery: z.boolean().default(false),
  }),
  (secrets, { SecretId: id, RecoveryWindowInDays: days, ForceDeleteWithoutRecovery: force }) => {
    if (force && days !== undefined) {
      throw invalidParameterError("You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.")
    }
    if (force) return deleteImmediately(secrets, id)
    return secrets.change(secrets.find(id), (secret) => {
      secret.DeletedDate = secrets.now()
      secret.DeletionDate = secret.DeletedDate + (days ?? defaultRecoveryDays) * secondsPerDay
      return { ...headOf(secret), DeletionDate: secret.DeletionDate }
    })
  },
)

/** Recognises a repeated CreateSecret by its request token. Rejects any other request for an existing name. */
function repeatCreation(secrets: SecretStore, secret: Secret, request: SecretValue) {
  if (secret.DeletedDate !== undefined) {
    throw invalidRequestError(
      "You can't create this secret because a secret with this name is already scheduled for deletion.",
    )
  }
  const token = request.ClientRequestToken
  if (token === undefined || secret.versions[token] === undefined) {
    throw resourceExistsError(`The operation failed because the secret ${secret.Name} already exists.`)
  }
  return { ...headOf(secret), VersionId: addVersion(secret, request, [], secrets.now()) }
}

/** Succeeds for a missing secret too, so that a call can be repeated. */
function deleteImmediately(secrets: SecretStore, id: string) {
  const secret = secrets.lookUp(id)
  if (secret === undefined) return { Name: id, DeletionDate: secrets.now() }
  secrets.remove(secret)
  return { ...headOf(secret), DeletionDate: secrets.now() }
}

function randomSuffix(): string {
  return Array.from({ length: 6 }, () => suffixCharacters[randomInt(suffixCharacters.length)]).join('')
}
