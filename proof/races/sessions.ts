import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { posting } from '../../test/support/event.ts'
import { all, type Figure, none } from '../part.ts'
import { timesTold } from '../support/records.ts'
import { newSession } from '../support/sign-in.ts'
import { Balance, firstOf, type Race, refreshing, saying, withStatus } from './round.ts'

const usersAtOnce = 8

/** Eight use one refresh token at once: at most one gets another, and the family of them all has ended afterwards. */
export async function raceForRefresh({ callers, say }: Race, rounds: number): Promise<Figure[]> {
  let [atMostOne, ended, told, strange, successors] = [0, 0, 0, 0, 0]
  const progress = saying(say, 'rounds of refresh', rounds)
  for (let round = 0; round < rounds; round++) {
    const { refreshToken, sessionId, organisationId } = await newSession()
    const call = refreshing(refreshToken)
    const answers = firstOf(await callers.together(Array.from({ length: usersAtOnce }, () => call)))
    const winners = withStatus(answers, 200)
    successors += winners.length
    atMostOne += winners.length <= 1 ? 1 : 0
    strange += answers.length - withStatus(answers, 200, 401).length
    const late = [refreshToken, ...winners.map(({ json }) => json.refreshToken)].map(refreshing)
    const areDead = firstOf(await callers.together(late)).every(({ status }) => status === 401)
    const session = await get(keys.session(sessionId))
    ended += areDead && session?.['revokedAtMs'] !== undefined ? 1 : 0
    told += (await timesTold(organisationId, 'session.reuse_detected')) === 1 ? 1 : 0
    progress(round)
  }
  return [
    all(
      `refresh, ${usersAtOnce} callers at once: rounds with at most one successor (${successors} in all)`,
      atMostOne,
      rounds,
    ),
    all('… whose second use has ended the family: the old token and the successor are refused', ended, rounds),
    all('… with one alarm', told, rounds),
    none('refresh: answers other than 200 and 401', strange, `${rounds * usersAtOnce}`),
  ]
}

/** Somebody signs out while others refresh and refresh again: whatever begins after the 204 is refused. */
export async function raceForLogout({ callers, random, say }: Race, rounds: number): Promise<Figure[]> {
  let [closed, late, alive, refreshed, strange] = [0, 0, 0, 0, 0]
  const progress = saying(say, 'rounds of logout', rounds)
  const leave = new Balance()
  for (let round = 0; round < rounds; round++) {
    const { accessToken, refreshToken } = await newSession()
    const headers = { authorization: `Bearer ${accessToken}` }
    const leaving = { ...posting('/api/v1/auth/logout', '', headers), body: '' }
    const calls = [
      { ...refreshing(refreshToken), refreshes: 5 },
      { function: 'auth' as const, sent: leaving, afterMs: leave.next(random) },
    ]
    const [chain = [], [logout] = []] = await callers.together(calls)
    if (logout?.status !== 204) continue
    closed++
    const successes = withStatus(chain, 200)
    refreshed += successes.length
    leave.wasTooEarly(successes.length < 3)
    strange += chain.length - withStatus(chain, 200, 401).length
    late += successes.filter(({ beganUs }) => beganUs > logout.endedUs).length
    const tokens = [refreshToken, ...successes.map(({ json }) => json.refreshToken)]
    alive += withStatus(firstOf(await callers.together(tokens.map(refreshing))), 200).length
    progress(round)
  }
  return [
    all('logout against refresh: rounds whose logout is answered 204', closed, rounds),
    none('refreshes that began after the 204 and succeeded', late, `${refreshed} that succeeded`),
    none('tokens of the session that work afterwards', alive),
    none('logout against refresh: answers other than 200 and 401', strange),
  ]
}
