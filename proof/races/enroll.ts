import * as Cluster from '@platform/core/clusters/cluster'
import { posting } from '../../test/support/event.ts'
import { callerOf, enrollRequest } from '../../test/support/world.ts'
import { all, type Figure, none } from '../part.ts'
import { timesTold } from '../support/records.ts'
import { allRows } from '../support/rows.ts'
import type { Answer } from './caller.ts'
import { firstOf, type Race, saying, withStatus } from './round.ts'

const relaysAtOnce = 8

/** Eight relays, each with a key of its own, enroll with one token. */
export async function raceForEnrollment({ callers, say }: Race, rounds: number): Promise<Figure[]> {
  let [oneWon, bound, told, strange] = [0, 0, 0, 0]
  const winnersOf: string[] = []
  const progress = saying(say, 'rounds of enrollment', rounds)
  for (let round = 0; round < rounds; round++) {
    const caller = await callerOf()
    const cluster = await Cluster.register(caller, { name: `cluster ${round}`, type: 'Hypervisor' })
    const calls = Array.from({ length: relaysAtOnce }, () => ({
      function: 'relay' as const,
      sent: posting('/api/v1/relay/enroll', enrollRequest(cluster.enrollmentToken)),
    }))
    const answers = firstOf(await callers.together(calls))
    const winners = withStatus(answers, 201)
    oneWon += winners.length === 1 ? 1 : 0
    strange += answers.length - winners.length - answers.filter(isUsed).length
    const row = await Cluster.find(caller.organisationId, cluster.id)
    bound += row?.relayId === winners[0]?.json.relayId ? 1 : 0
    told += (await timesTold(caller.organisationId, 'enrollment.reuse_detected')) === 1 ? 1 : 0
    winnersOf.push(...winners.map(({ json }) => json.relayId))
    progress(round)
  }
  const relays = (await allRows()).filter(({ sk }) => sk === 'RELAY').map(({ relayId }) => String(relayId))
  const others = relays.filter((relayId) => !winnersOf.includes(relayId)).length
  return [
    all(`enrollment, ${relaysAtOnce} relays at once: rounds with exactly one 201`, oneWon, rounds),
    all('… whose cluster has the winner’s relay', bound, rounds),
    all('… whose token’s second use is an alarm, once', told, rounds),
    none('relays in the table that no winner was told of', others, `${relays.length}`),
    none('enrollment: answers other than 201 and 409 enrollment_token_used', strange, `${rounds * relaysAtOnce}`),
  ]
}

const isUsed = ({ status, json }: Answer): boolean => status === 409 && json.error === 'enrollment_token_used'
