import { posting } from '../../test/support/event.ts'
import { administrator, adminToken } from '../../test/support/world.ts'
import { all, type Figure, none } from '../part.ts'
import { acknowledgementsLost, loseAcknowledgements } from '../support/lost-acknowledgements.ts'
import { isSetUpOnce, startAnew } from '../support/fresh-platform.ts'
import { allRows } from '../support/rows.ts'
import type { Answer } from './caller.ts'
import { firstOf, type Race, refreshing, saying, withStatus } from './round.ts'

/** More of one process at once are told that too many passwords are being hashed. */
const callersOfProcess = 4

/** Many complete the setup of a platform that was never set up; in some rounds the winner's store acknowledges nothing. */
export async function raceForSetup(race: Race, rounds: number, roundsUnheard: number): Promise<Figure[]> {
  const callersAtOnce = callersOfProcess * race.callers.processes
  const seen = { won: 0, alone: 0, signedIn: 0, strange: 0 }
  const unheard = { won: 0, alone: 0, signedIn: 0, strange: 0, lost: 0 }
  const say = saying(race.say, 'rounds of setup', rounds + roundsUnheard)
  for (let round = 0; round < rounds; round++) {
    await runRound(race, seen)
    say(round)
  }
  for (let round = 0; round < roundsUnheard; round++) {
    await runRound(race, unheard, true)
    say(rounds + round)
  }
  const answers = callersAtOnce * (rounds + roundsUnheard)
  return [
    all(`setup, ${callersAtOnce} callers at once: rounds with exactly one 200`, seen.won, rounds),
    all('… with one organisation, one user, one administrator, one session', seen.alone, rounds),
    all('… whose winner’s tokens work', seen.signedIn, rounds),
    all('setup, the winner’s acknowledgement lost: rounds in which it was', unheard.lost, roundsUnheard),
    all(
      '… with exactly one 200, one organisation, one administrator',
      Math.min(unheard.won, unheard.alone),
      roundsUnheard,
    ),
    all('… whose winner still got tokens that work', unheard.signedIn, roundsUnheard),
    none('setup: answers other than 200 and 403 setup_already_complete', seen.strange + unheard.strange, `${answers}`),
  ]
}

async function runRound(
  { callers, random }: Race,
  seen: { won: number; alone: number; signedIn: number; strange: number; lost?: number },
  isUnheard = false,
): Promise<void> {
  await startAnew()
  const body = { ...administrator, initialAdminToken: await adminToken() }
  // They are spread over as long as the winner takes.
  const calls = Array.from({ length: callersOfProcess * callers.processes }, () => ({
    function: 'setup' as const,
    sent: posting('/api/v1/setup/complete', body),
    afterMs: Math.floor(random() * 4),
  }))
  if (isUnheard) await loseAcknowledgements(1)
  const answers = firstOf(await callers.together(calls))
  if (isUnheard) seen.lost = (seen.lost ?? 0) + (await acknowledgementsLost(1))
  const winners = withStatus(answers, 200)
  seen.won += winners.length === 1 ? 1 : 0
  seen.alone += isSetUpOnce(await allRows()) ? 1 : 0
  seen.strange += answers.length - winners.length - answers.filter(isTold).length
  const [winner] = winners
  if (winner === undefined) return
  const [next] = firstOf(await callers.together([refreshing(winner.json.refreshToken)]))
  seen.signedIn += next?.status === 200 ? 1 : 0
}

const isTold = ({ status, json }: Answer): boolean => status === 403 && json.error === 'setup_already_complete'
