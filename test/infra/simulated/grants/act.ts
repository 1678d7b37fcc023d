import assert from 'node:assert/strict'
import { answered } from '../../../conformance/support/answer.ts'
import { areas } from '../../../conformance/support/areas.ts'
import { entriesOf } from '../../../conformance/support/audit.ts'
import type { Act } from './withholding.ts'

/** Journeys that need grants: those of conformance, and those that take more than a caller can do. */

/** A journey that was skipped has shown nothing. */
export const report = { diagnostic: () => {}, skip: (reason: string) => assert.fail(`It was skipped: ${reason}`) }

/** A journey of conformance; throws where there is none by that name. */
export function conformance(area: string, promise: string): Act {
  const journey = areas[area]?.[promise]
  if (journey === undefined) throw new Error(`Conformance has no journey "${promise}" in ${area}.`)
  return { title: `${area}: ${promise}`, play: ({ platform }) => journey(platform, report) }
}

/** The same in the platform's own organisation: nothing else happens there meanwhile. */
export const inPlatform = (act: Act): Act => ({ ...act, isAlone: true })

/** A journey of the rehearsal alone. */
export const own = (title: string, play: Act['play'], rest: Partial<Act> = {}): Act => ({ title, play, ...rest })

export const organisationOnRecord = inPlatform(
  own('organisations that are created are on record, each by itself', async ({ platform }) => {
    const admin = await platform.admin
    for (const name of [platform.newName(), platform.newName()]) {
      const { id } = answered(await admin.post('/api/v1/platform/organisations', { name }), 201)
      await entriesOf(admin, `resource=${id}`, 1)
    }
  }),
)
