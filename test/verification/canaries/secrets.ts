import { parseJson } from '../../conformance/support/answer.ts'
import type { Exchange } from './recorder.ts'
import type { Secret } from './search.ts'

/** Body members that contain secrets → kind of the secret. */
const secretMembers: Readonly<Record<string, string>> = {
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

const secretsInBody = (body: string): Secret[] =>
  Object.entries(Object(parseJson(Buffer.from(body, 'latin1').toString()))).flatMap(([name, text]) => {
    const kind = Object.hasOwn(secretMembers, name) ? secretMembers[name] : undefined
    return kind !== undefined && typeof text === 'string' ? [{ kind, text }] : []
  })

function secretsInHeaders(flat: readonly string[]): Secret[] {
  const headers = flat.flatMap((name, index) =>
    index % 2 === 0 ? [{ name: name.toLowerCase(), value: flat[index + 1] ?? '' }] : [],
  )
  const isFromRelay = headers.some(({ name, value }) => name === 'authorization' && value.startsWith('Relay '))
  return headers.flatMap(({ name, value }) => {
    // A user's idempotency key gives access to the stored response, so it is secret. A relay's key is useless without
    // the relay's signature.
    if (name === 'idempotency-key') return isFromRelay ? [] : [{ kind: 'Idempotency-Key', text: value }]
    const relayToken = name === 'authorization' ? /^Relay (\S+)$/.exec(value)?.[1] : undefined
    if (relayToken !== undefined) return [{ kind: 'relay token', text: relayToken }]
    const cookie = name === 'set-cookie' ? /^[^=]+=([^;]+)/.exec(value)?.[1] : undefined
    return cookie === undefined ? [] : [{ kind: 'session cookie', text: cookie }]
  })
}

/** Shorter texts could match by chance. The platform issues no secret that is shorter. */
const minLength = 16

export function secretsOf(exchanges: readonly Exchange[]): Secret[] {
  const messages = exchanges
    .filter(({ status }) => status < 400)
    .flatMap(({ request, response }) => [request, response])
  const secrets = messages.flatMap(({ headers, body }) => [...secretsInHeaders(headers), ...secretsInBody(body)])
  const byText = new Map(secrets.toReversed().map((secret) => [secret.text, secret]))
  return [...byText.values()].filter(({ text }) => text.length >= minLength)
}

const tokenRequest = /^POST \/api\/v1\/(?:auth\/(?:login|local-login|refresh|oidc\/token)|setup\/complete)$/

const issuingRequests: Readonly<Record<string, RegExp>> = {
  'access token': tokenRequest,
  'refresh token': tokenRequest,
  'session cookie': /^(?:POST|DELETE) \/api\/v1\/auth\/session(?:\/refresh)?$/,
  'enrollment token': /^POST \/api\/v1\/clusters(?:\/[^/]+\/enrollment-token)?$/,
  'API token': /^POST \/api\/v1\/users\/me\/tokens$/,
  'webhook secret': /^POST \/api\/v1\/webhooks(?:\/[^/]+\/rotate-secret)?$/,
}

/** Whether the secret was the name of a member in a rejected request. The response names unknown members. */
export const isUnknownMember = ({ request, status }: Exchange, { text }: Secret): boolean =>
  status === 400 && Object.hasOwn(Object(parseJson(Buffer.from(request.body, 'latin1').toString())), text)

export const isIssuedBy = ({ method, target, status }: Exchange, { kind }: Secret): boolean =>
  status < 400 && issuingRequests[kind]?.test(`${method} ${target.split('?', 1)[0]}`) === true
