import * as z from 'zod'
import { Filter, matches } from './filter.ts'
import { operation, page, pageMembers } from './operation.ts'
import { type Secret, stagesById } from './secret.ts'

export const listSecrets = operation(
  z.object({
    ...pageMembers,
    Filters: z.array(Filter).default([]),
    IncludePlannedDeletion: z.boolean().default(false),
    SortOrder: z.enum(['asc', 'desc']).default('asc'),
  }),
  (secrets, request) => {
    const matchingSecrets = secrets
      .all()
      .filter((secret) => request.IncludePlannedDeletion || secret.DeletedDate === undefined)
      .filter((secret) => request.Filters.every((filter) => matches(secret, filter)))
    const { items, ...next } = page(
      request.SortOrder === 'asc' ? matchingSecrets : matchingSecrets.toReversed(),
      request,
    )
    return { SecretList: items.map(listEntry), ...next }
  },
)

function listEntry(secret: Secret) {
  return { ...descriptionOf(secret), SecretVersionsToStages: stagesById(secret) }
}

function descriptionOf(secret: Secret) {
  const { versions: _versions, DeletionDate: _deletionDate, ...description } = secret
  return description
}
