import * as ApiToken from '@platform/core/accounts/api-token'
import * as Cluster from '@platform/core/clusters/cluster'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId, newSecret, sha256 } from '@platform/core/id'
import { signIn } from '@platform/core/accounts/session'
import { password, personOf } from '../../test/functions/person.ts'
import { rowNamed } from '../../test/functions/table.ts'
import { posting, type Received, send } from '../../test/support/event.ts'
import { administrator, adminToken, enrollRequest } from '../../test/support/world.ts'
import { callerOf } from '../tokens/kinds.ts'

/** Two kinds of guesses, and the only answer that either may get. */
export interface Guesses {
  claim: string
  first: () => Promise<Received>
  second: () => Promise<Received>
  status: number
}

const post = (name: string, body: unknown): Promise<Received> =>
  send(rowNamed(name).handler, posting(name.split(' ')[1] ?? '', body))

/** Sign-ins with a wrong password: of somebody, and of nobody. */
export async function signIns(): Promise<Guesses[]> {
  const { username } = await personOf('Viewer')
  return ['login', 'local-login', 'session'].map((way) => {
    const row = rowNamed(`POST /api/v1/auth/${way}`)
    const page = { origin: 'https://platform.example.com', 'sec-fetch-site': 'same-origin' }
    const guess = (name: string): Promise<Received> =>
      send(row.handler, posting(row.endpoint.path, { username: name, password: newSecret() }, page))
    return {
      claim: `a wrong password at auth/${way}, of somebody and of nobody`,
      first: () => guess(username),
      // As long as the other, and asked for once.
      second: () => guess(`u-${crypto.randomUUID()}`),
      status: 401,
    }
  })
}

/** A text with the beginning of a secret, and with nothing of it. */
const guessOf = (secret: string) => ({
  near: (): string => `${secret.slice(0, -4)}${newSecret().slice(0, 4)}`,
  far: (): string => newSecret().slice(0, secret.length),
})

const askSetup = (guess: string): Promise<Received> =>
  post('POST /api/v1/setup/complete', { ...administrator, initialAdminToken: `admin.${guess}` })

async function initialAdminToken(): Promise<Guesses> {
  const token = await adminToken()
  const set = { setupComplete: false, tokenHash: sha256(token), tokenMintedAtMs: now() }
  await transact([patch(keys.platform(), { set })])
  const { near, far } = guessOf(token.slice('admin.'.length))
  return { claim: 'an initial admin token', first: () => askSetup(near()), second: () => askSetup(far()), status: 422 }
}

async function enrollmentToken(): Promise<Guesses> {
  const caller = await callerOf(await personOf('OrgAdmin'))
  const cluster = await Cluster.register(caller, { name: newId('clus'), type: 'Hypervisor' })
  const [id = '', secret = ''] = cluster.enrollmentToken.split('.')
  const { near, far } = guessOf(secret)
  const request = enrollRequest('')
  const ask = (guess: string): Promise<Received> =>
    post('POST /api/v1/relay/enroll', { ...request, enrollmentToken: `${id}.${guess}` })
  return { claim: 'an enrollment token', first: () => ask(near()), second: () => ask(far()), status: 401 }
}

async function apiToken(): Promise<Guesses> {
  const { token } = await ApiToken.create(await callerOf(await personOf('OrgAdmin')), { name: newId('tok') })
  const { near, far } = guessOf(token.slice(-43))
  const ask = (guess: string): Promise<Received> => {
    const headers = { authorization: `Bearer ${token.slice(0, -43)}${guess}` }
    return send(rowNamed('GET /api/v1/auth/me').handler, { target: '/api/v1/auth/me', headers })
  }
  return { claim: 'an API token', first: () => ask(near()), second: () => ask(far()), status: 401 }
}

async function refreshToken(): Promise<Guesses> {
  const { username } = await personOf('Viewer')
  const { refreshToken: token } = await signIn({ username, password }, { address: '192.0.2.1' })
  const [session = '', id = '', secret = ''] = token.split('.')
  const { near, far } = guessOf(secret)
  const ask = (guess: string): Promise<Received> =>
    post('POST /api/v1/auth/refresh', { refreshToken: `${session}.${id}.${guess}` })
  return { claim: 'a refresh token', first: () => ask(near()), second: () => ask(far()), status: 401 }
}

/** Guesses of secrets: with all but the end of the right one, and with nothing of it. */
export const secrets = (): Promise<Guesses[]> =>
  Promise.all([initialAdminToken(), enrollmentToken(), apiToken(), refreshToken()])
