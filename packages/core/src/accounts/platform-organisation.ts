import * as keys from '../db/keys.ts'
import { query } from '../db/table.ts'

/** The oldest organisation operates the platform. Returns undefined until setup is complete. */
export async function platformOrganisationId(): Promise<string | undefined> {
  const { items } = await query({ pk: keys.organisation('').pk, limit: 1 })
  const [oldestOrganisation] = items
  return oldestOrganisation?.['isPlatform'] === true ? String(oldestOrganisation['id']) : undefined
}
