import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { refresh, signOut } from '@platform/core/accounts/session'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import { refusalOf } from '../../test/support/world.ts'
import { timesTold } from '../support/records.ts'
import { newSession } from '../support/sign-in.ts'
import { answersOf, countOf, endsOf, must, mustEnd, type Scenario } from './scenario.ts'
import { interleaved } from './stage.ts'

const mustBeDead = async (tokens: readonly string[]): Promise<void> => {
  for (const refreshToken of tokens) {
    must((await refusalOf(refresh({ refreshToken }))) === 'invalid_refresh_token', 'A token works that must be dead.')
  }
}

export const refreshes: Scenario = {
  claim: 'of 2 to 4 that use one refresh token at most one gets a successor, and the family has ended',
  runs: { whole: 2000, short: 12 },
  callers: { min: 2, max: 4 },
  play: async (scheduler, count) => {
    const { refreshToken, sessionId, organisationId } = await newSession()
    const settled = await interleaved(
      scheduler,
      Array.from({ length: count }, () => () => refresh({ refreshToken })),
    )
    const ends = endsOf(settled)
    mustEnd(ends, 'done', 'invalid_refresh_token')
    must(countOf(ends, 'done') <= 1, 'There are several successors.')
    must((await get(keys.session(sessionId)))?.['revokedAtMs'] !== undefined, 'The family lives on.')
    must((await timesTold(organisationId, 'session.reuse_detected')) === 1, 'There is no alarm, or several.')
    await mustBeDead([refreshToken, ...answersOf(settled).map((tokens) => tokens.refreshToken)])
  },
}

export const logouts: Scenario = {
  claim: 'after a logout no refresh succeeds, nor does one that began later',
  runs: { whole: 1000, short: 8 },
  callers: { min: 2, max: 3 },
  play: async (scheduler, count) => {
    const { refreshToken, accessToken } = await newSession()
    const caller = await verifyAccessToken(accessToken)
    let isClosed = false
    const tokens = [refreshToken]
    const refreshing = async () => {
      for (let times = 0; times < 2; times++) {
        const beganLate = isClosed
        const last = tokens.at(-1) ?? ''
        tokens.push((await refresh({ refreshToken: last })).refreshToken)
        must(!beganLate, 'A refresh that began after the logout succeeded.')
      }
    }
    const leaving = async () => {
      await signOut(caller)
      isClosed = true
    }
    // The third is another tab, which signs out as well.
    const ends = endsOf(await interleaved(scheduler, [refreshing, leaving, leaving].slice(0, count)))
    mustEnd(ends, 'done', 'invalid_refresh_token')
    await mustBeDead(tokens)
  },
}
