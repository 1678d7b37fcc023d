import * as z from 'zod'
import { Filter, matches } from './filter.ts'
import { operation, page, pageMembers, SecretId, Tags } from './operation.ts'
import { notFound } from './errors.ts'
import { type Secret, stagesById } from './secret.ts'

export const describeSecret = operation(z.object({ SecretId }), (secrets, request) => {
  const secret = secrets.lookUp(request.SecretId)
  if (secret === undefined) throw notFound()
  return { ...descriptionOf(secret), VersionIdsToStages: stagesById(secret) }
})

export const listSecrets = operation(
  z.object({
    ...pageMembers,
    Filters: z.array(Filter).default([]),
    IncludePlannedDeletion: z.boolean().default(false),
    SortOrder: z.enum(['asc', 'desc']).default('asc'),
  }),
  (secrets, request) => {
    const matching = secrets
      .all()
      .filter((secret) => request.IncludePlannedDeletion || secret.DeletedDate === undefined)
      .filter((secret) => request.Filters.every((filter) => matches(secret, filter)))
    const { items, ...next } = page(request.SortOrder === 'asc' ? matching : matching.toReversed(), request)
    return { SecretList: items.map(listEntry), ...next }
  },
)

export const tagResource = operation(z.object({ SecretId, Tags }), (secrets, request) =>
  secrets.change(secrets.find(request.SecretId), (secret) => {
    const replaced = new Set(request.Tags.map((tag) => tag.Key))
    secret.Tags = [...(secret.Tags ?? []).filter((tag) => !replaced.has(tag.Key)), ...request.Tags]
    return {}
  }),
)

function listEntry(secret: Secret) {
  return { ...descriptionOf(secret), SecretVersionsToStages: stagesById(secret) }
}

function descriptionOf(secret: Secret) {
  const { versions: _versions, DeletionDate: _deletionDate, ...description } = secret
  return description
}
