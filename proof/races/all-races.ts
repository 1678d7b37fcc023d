import { seededRandom } from '@platform/local/emulators/dynamodb/random'
import { started } from '../../test/support/world.ts'
import { type Effort, type Figure } from '../part.ts'
import { startCallers } from './callers.ts'
import { raceForEnrollment } from './enroll.ts'
import { orphans, raceForRemoval } from './removal.ts'
import { raceForLogout, raceForRefresh } from './sessions.ts'
import { raceForSetup } from './setup.ts'

/** How many rounds of each, by how many processes. */
const whole = { processes: 4, setup: 200, unheard: 20, refresh: 500, logout: 300, enroll: 200, removal: 300 }
const short = { processes: 2, setup: 1, unheard: 1, refresh: 4, logout: 4, enroll: 2, removal: 8 }

/** All races, one after the other. Setup comes first: each of its rounds begins with an empty table. */
export async function runRaces({ isShort, seed, say }: Effort): Promise<Figure[]> {
  const rounds = isShort ? short : whole
  await started()
  await using callers = await startCallers(rounds.processes)
  const race = { callers, random: seededRandom(seed), say }
  return [
    ...(await raceForSetup(race, rounds.setup, rounds.unheard)),
    ...(await raceForRefresh(race, rounds.refresh)),
    ...(await raceForLogout(race, rounds.logout)),
    ...(await raceForEnrollment(race, rounds.enroll)),
    ...(await raceForRemoval(race, 'jobs', rounds.removal)),
    ...(await raceForRemoval(race, 'batches', rounds.removal)),
    ...(await orphans()),
  ]
}
