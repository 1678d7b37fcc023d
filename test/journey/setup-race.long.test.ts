import { expect, test } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { PlatformProcess } from '../support/platform.ts'

// By default the tests of setup show the race, and a kill under load that nothing answered is lost.
test('of sixteen that complete setup at once exactly one wins, and its answer survives a kill', async () => {
  await using platform = await PlatformProcess.start()
  const api = await platform.api()
  const body = await platform.setupBody()
  const complete = () => api.anonymous.attempt('POST', '/api/v1/setup/complete', { json: body })
  const answers = await Promise.all(Array.from({ length: 16 }, complete))

  const winners = answers.filter(({ status }) => status === 200)
  expect(winners).toHaveLength(1)
  for (const answer of answers) {
    if (answer.status === 403) expect(answer.body.setupComplete).toBe(true)
    // A loser may hear instead that too many passwords are being hashed at this moment.
    else expect([200, 429]).toContain(answer.status)
  }

  await platform.kill()
  await platform.restart()
  const winner = api.anonymous.withToken(winners[0]?.body.accessToken)
  const me = answered(await winner.get('/api/v1/auth/me'), 200)
  expect(answered(await (await api.admin).get('/api/v1/auth/me'), 200)).toEqual(me)
  answered(await complete(), 403, 'setup_already_complete')
})
