import { expectStatus } from '../../../conformance/support/answer.ts'
import { entriesOf } from '../../../conformance/support/audit.ts'
import type { Act } from './withholding.ts'

/** Journeys that need grants: those of conformance, and those that take more than a caller can do. */

/** The same in the platform's own organisation: nothing else happens there meanwhile. */
export const inPlatform = (act: Act): Act => ({ ...act, isAlone: true })

/** A journey of the simulator alone. */
export const own = (title: string, play: Act['play'], rest: Partial<Act> = {}): Act => ({ title, play, ...rest })

export const organisationOnRecord = inPlatform(
  own('organisations that are created are on record, each by itself', async ({ platform }) => {
    const admin = await platform.admin
    for (const name of [platform.newName(), platform.newName()]) {
      const { id } = expectStatus(await admin.post('/api/v1/platform/organisations', { name }), 201)
      await entriesOf(admin, `resource=${id}`, 1)
    }
  }),
)
