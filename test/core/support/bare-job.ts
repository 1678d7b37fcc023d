import * as keys from '@platform/core/db/keys'
import { batchPut } from '@platform/core/db/table'
import { newId } from '@platform/core/id'

/** A job as far as lists tell. */
export async function jobOf(organisationId: string, status: string): Promise<keys.Key> {
  const id = newId('job')
  const key = keys.job(organisationId, id)
  await batchPut([{ ...key, id, status, ...keys.jobStatusIndexKey({ organisationId }, status) }])
  return key
}
