import type { Exchange } from './recorder.ts'
import type { Secret } from './needles.ts'

/** Members of bodies that are secrets, by what they are. */
const members: Readonly<Record<string, string>> = {
  adminPassword: 'password',
  password: 'password',
  currentPassword: 'password',
  newPassword: 'password',
  accessToken: 'access token',
  refreshToken: 'refresh token',
  initialAdminToken: 'initial admin token',
  enrollmentToken: 'enrollment token',
  token: 'API token',
  secret: 'webhook secret',
  clientSecret: 'client secret',
  bindPassword: 'bind password',
}

const parse = (body: string): any => {
  try {
    return JSON.parse(Buffer.from(body, 'latin1').toString())
  } catch {
    return undefined
  }
}

const secretsOfBody = (body: string): Secret[] =>
  Object.entries<unknown>(parse(body) ?? {}).flatMap(([name, text]) => {
    const kind = Object.hasOwn(members, name) ? members[name] : undefined
    return kind !== undefined && typeof text === 'string' ? [{ kind, text }] : []
  })

/** Pairs of a flat list, as Node has headers. */
const pairsOf = (flat: readonly string[]): [string, string][] =>
  flat.flatMap((name, index): [string, string][] =>
    index % 2 === 0 ? [[name.toLowerCase(), flat[index + 1] ?? '']] : [],
  )

const isOfRelay = (pairs: readonly [string, string][]): boolean =>
  pairs.some(([name, value]) => name === 'authorization' && value.startsWith('Relay '))

const secretsOfHeaders = (flat: readonly string[]): Secret[] =>
  pairsOf(flat).flatMap(([name, value], _, pairs) => {
    // A user's key opens the answer that is kept. That of a relay's claim opens nothing: a repeat has to be signed.
    if (name === 'idempotency-key') return isOfRelay(pairs) ? [] : [{ kind: 'Idempotency-Key', text: value }]
    const relayToken = name === 'authorization' ? /^Relay (\S+)$/.exec(value)?.[1] : undefined
    if (relayToken !== undefined) return [{ kind: 'relay token', text: relayToken }]
    const cookie = name === 'set-cookie' ? /^[^=]+=([^;]+)/.exec(value)?.[1] : undefined
    return cookie === undefined ? [] : [{ kind: 'session cookie', text: cookie }]
  })

/** What is shorter could be met by chance, and no platform makes such. */
const shortest = 16

/** All secrets that were given to the platform, or that it gave, and that were good for something. */
export function secretsOf(exchanges: readonly Exchange[]): Secret[] {
  const found = new Map<string, Secret>()
  for (const { asked, told, status } of exchanges) {
    if (status >= 400) continue
    const here = [asked, told].flatMap(({ headers, body }) => [...secretsOfHeaders(headers), ...secretsOfBody(body)])
    for (const secret of here)
      if (secret.text.length >= shortest && !found.has(secret.text)) found.set(secret.text, secret)
  }
  return [...found.values()]
}

const shown: Readonly<Record<string, RegExp>> = {
  'access token': /^POST \/api\/v1\/(?:auth\/(?:login|local-login|refresh|oidc\/token)|setup\/complete)$/,
  'refresh token': /^POST \/api\/v1\/(?:auth\/(?:login|local-login|refresh|oidc\/token)|setup\/complete)$/,
  'session cookie': /^(?:POST|DELETE) \/api\/v1\/auth\/session(?:\/refresh)?$/,
  'enrollment token': /^POST \/api\/v1\/clusters(?:\/[^/]+\/enrollment-token)?$/,
  'API token': /^POST \/api\/v1\/users\/me\/tokens$/,
  'webhook secret': /^POST \/api\/v1\/webhooks$/,
}

/** Whether an answer is the one place where secrets of this kind are shown. */
export const isShownBy = ({ method, target, status }: Exchange, { kind }: Secret): boolean =>
  status < 400 && shown[kind]?.test(`${method} ${target.split('?', 1)[0]}`) === true
