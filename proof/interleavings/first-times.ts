import * as Cluster from '@platform/core/clusters/cluster'
import { enroll } from '@platform/core/relays/enrollment'
import { refresh } from '@platform/core/accounts/session'
import { complete } from '@platform/core/platform/setup'
import { administrator, adminToken, callerOf, enrollRequest } from '../../test/support/world.ts'
import { isSetUpOnce, startAnew } from '../support/fresh-platform.ts'
import { recordsOf } from '../support/records.ts'
import { allRows } from '../support/rows.ts'
import { answersOf, countOf, endsOf, must, mustEnd, type Scenario } from './scenario.ts'
import { interleaved } from './stage.ts'

export const setups: Scenario = {
  claim: 'of 2 or 3 that complete setup one wins, and its tokens work',
  runs: { whole: 300, short: 3 },
  callers: { min: 2, max: 3 },
  play: async (scheduler, count) => {
    await startAnew()
    const body = { ...administrator, initialAdminToken: await adminToken() }
    const settled = await interleaved(
      scheduler,
      Array.from({ length: count }, () => () => complete(body)),
    )
    const ends = endsOf(settled)
    mustEnd(ends, 'done', 'setup_already_complete')
    must(countOf(ends, 'done') === 1, 'Not exactly one has won.')
    must(isSetUpOnce(await allRows()), 'There is not one of each.')
    await refresh(answersOf(settled)[0])
  },
}

export const enrollments: Scenario = {
  claim: 'one token enrolls one relay, whose own repeat is answered the same',
  runs: { whole: 1000, short: 6 },
  callers: { min: 2, max: 4 },
  play: async (scheduler, count) => {
    const caller = await callerOf()
    const { id, enrollmentToken } = await Cluster.register(caller, { name: 'berlin-1', type: 'Hypervisor' })
    const [one, two] = [enrollRequest(enrollmentToken), enrollRequest(enrollmentToken)]
    // The first relay asks twice, as after an answer that was lost.
    const requests = [one, two, one, enrollRequest(enrollmentToken)].slice(0, count)
    const settled = await interleaved(
      scheduler,
      requests.map((request) => () => enroll(request)),
    )
    const ends = endsOf(settled)
    mustEnd(ends, 'done', 'enrollment_token_used')
    const relays = new Set(answersOf(settled).map(({ relayId }) => relayId))
    must(relays.size === 1, `${relays.size} relays are enrolled.`)
    const row = await Cluster.find(caller.organisationId, id)
    must(relays.has(row?.relayId), 'The cluster has another relay.')
    const records = await recordsOf(caller.organisationId)
    const told = records.flatMap(({ events }) => events.map(({ name }) => name))
    must(countOf(told, 'cluster.enrolled') === 1, 'The enrollment is not told of once.')
    must(countOf(told, 'enrollment.reuse_detected') <= 1, 'There are several alarms.')
  },
}
