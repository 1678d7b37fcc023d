import * as ApiToken from '@platform/core/accounts/api-token'
import { signIn } from '@platform/core/accounts/session'
import * as Cluster from '@platform/core/clusters/cluster'
import { newId, newSecret } from '@platform/core/id'
import { beforeAll, test, vi } from 'vitest'
import { password, newUser } from '../functions/users.ts'
import { operationNamed } from '../functions/operations.ts'
import { enrollRequest } from '../support/fixtures.ts'
import { seededRandom } from '../support/random.ts'
import { send, type TestResponse } from '../support/request.ts'
import { countStoreCalls } from '../support/store-calls.ts'
import { claimBetween, claimNone } from './support/claims.ts'
import { isShort, print, seed } from './support/run.ts'
import { callerOf, post, reopenSetup } from './tokens/token-kinds.ts'

const countHashes = await vi.hoisted(async () => {
  const { default: crypto } = await import('node:crypto')
  const { syncBuiltinESMExports } = await import('node:module')
  const { argon2 } = crypto
  let count = 0
  crypto.argon2 = (...args: Parameters<typeof argon2>) => {
    count++
    argon2(...args)
  }
  syncBuiltinESMExports()
  return () => count
})

/** Two kinds of wrong guesses, which must get the same response in the same time. */
interface Guesses {
  name: string
  first: () => Promise<TestResponse>
  second: () => Promise<TestResponse>
  status: number
  count: number
  margin: number
}

async function guessUsers(endpoint: string): Promise<Guesses> {
  const { username } = await newUser('Viewer')
  const page = { origin: 'https://platform.example.com', 'sec-fetch-site': 'same-origin' }
  const guess = (name: string) => post(`/api/v1/auth/${endpoint}`, { username: name, password: newSecret() }, page)
  return {
    name: `a wrong password at auth/${endpoint}, of a known and an unknown name`,
    first: () => guess(username),
    second: () => guess(`u-${crypto.randomUUID()}`),
    status: 401,
    // Sign-ins are slow, so their number is small.
    count: 200,
    margin: 0.1,
  }
}

function guessSecret(
  name: string,
  secret: string,
  status: number,
  guess: (secret: string) => Promise<TestResponse>,
): Guesses {
  return {
    name,
    first: () => guess(`${secret.slice(0, -4)}${newSecret().slice(0, 4)}`),
    second: () => guess(newSecret().slice(0, secret.length)),
    status,
    count: 3000,
    margin: 0.05,
  }
}

async function guessSecrets(): Promise<Guesses[]> {
  const setup = await reopenSetup()
  const caller = await callerOf(await newUser('OrgAdmin'))
  const cluster = await Cluster.register(caller, { name: newId('clus'), type: 'Hypervisor' })
  const [enrollmentId = '', enrollmentSecret = ''] = cluster.enrollmentToken.split('.')
  const request = enrollRequest('')
  const { token } = await ApiToken.create(caller, { name: newId('tok') })
  const me = (secret: string) => {
    const headers = { authorization: `Bearer ${token.slice(0, -43)}${secret}` }
    return send(operationNamed('GET /api/v1/auth/me').handler, { target: '/api/v1/auth/me', headers })
  }
  const { refreshToken } = await signIn(
    { username: (await newUser('Viewer')).username, password },
    { address: '192.0.2.1' },
  )
  const [sessionId = '', id = '', refreshSecret = ''] = refreshToken.split('.')
  return [
    guessSecret('an initial admin token', setup.initialAdminToken.slice('admin.'.length), 422, (secret) =>
      post('/api/v1/setup/complete', { ...setup, initialAdminToken: `admin.${secret}` }),
    ),
    guessSecret('an enrollment token', enrollmentSecret, 401, (secret) =>
      post('/api/v1/relay/enroll', { ...request, enrollmentToken: `${enrollmentId}.${secret}` }),
    ),
    guessSecret('an API token', token.slice(-43), 401, me),
    guessSecret('a refresh token', refreshSecret, 401, (secret) =>
      post('/api/v1/auth/refresh', { refreshToken: `${sessionId}.${id}.${secret}` }),
    ),
  ]
}

let allGuesses: readonly Guesses[] = []
beforeAll(async () => {
  const users = await Promise.all(['login', 'local-login', 'session'].map(guessUsers))
  allGuesses = [...users, ...(await guessSecrets())]
})

test('two kinds of wrong guesses cause the same store calls and password hashes', async () => {
  const workOf = async (guess: Guesses['first'], expected: number): Promise<string> => {
    const countBefore = countHashes()
    let status = 0
    const calls = await countStoreCalls(async () => ({ status } = await guess()))
    if (status !== expected) throw new Error(`A guess got ${status} instead of ${expected}.`)
    return `${calls} store calls, ${countHashes() - countBefore} hashes`
  }
  const differentResponses: string[] = []
  for (const { name, first, second, status } of allGuesses) {
    const [firstWork, secondWork] = [await workOf(first, status), await workOf(second, status)]
    if (firstWork !== secondWork) differentResponses.push(`${name}: ${firstWork}; ${secondWork}`)
  }
  claimNone('pairs of guesses with different work', differentResponses, `${allGuesses.length} pairs`)
})

/** Returns the share of pairs in which the first time is longer: 0.5 if times do not distinguish the two kinds. */
function areaUnderCurve(firsts: readonly number[], seconds: readonly number[]): number {
  let longer = 0
  for (const first of firsts) for (const second of seconds) longer += first > second ? 1 : first === second ? 0.5 : 0
  return longer / (firsts.length * seconds.length)
}

/** Measures both kinds in turns, in random order, so that other load of the machine affects both. */
async function measure({ first, second, count }: Guesses, random: () => number): Promise<number> {
  const timesMs: [number[], number[]] = [[], []]
  for (let index = -10; index < count; index++) {
    for (const kind of random() < 0.5 ? ([0, 1] as const) : ([1, 0] as const)) {
      const startedAtMs = performance.now()
      await (kind === 0 ? first() : second())
      if (index >= 0) timesMs[kind].push(performance.now() - startedAtMs)
    }
  }
  return areaUnderCurve(...timesMs)
}

test.skipIf(isShort)('response times do not distinguish two kinds of wrong guesses', async () => {
  for (const [index, guesses] of allGuesses.entries()) {
    const random = seededRandom(seed + index)
    const areas: number[] = []
    // Measure up to three times: random variation alone sometimes exceeds the margin.
    while (areas.length < 3 && !areas.some((area) => Math.abs(area - 0.5) <= guesses.margin)) {
      areas.push(await measure(guesses, random))
      print(`${guesses.name}: ${areas.at(-1)?.toFixed(3)}`)
    }
    const { name, count, margin } = guesses
    claimBetween(`area under the curve (${count} of each): ${name}`, areas.at(-1) ?? 0, 0.5 - margin, 0.5 + margin)
  }
})
