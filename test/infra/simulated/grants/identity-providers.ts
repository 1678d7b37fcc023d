import assert from 'node:assert/strict'
import { expectStatus } from '../../../conformance/support/answer.ts'
import type { Client } from '../../../conformance/support/client.ts'
import { Browser } from '../../../support/browser.ts'
import { startOidcProvider } from '../../../support/oidc-peer.ts'
import * as slapd from '../../../support/slapd.ts'
import type { Environment } from './environment.ts'

const path = '/api/v1/platform/identity/providers'
const portal = 'https://platform.example.com'

export async function startIdentityProviders([plainPort, securePort]: readonly [number, number]) {
  await using resources = new AsyncDisposableStack()
  const directory = resources.use(
    await slapd.startSlapd({ plain: plainPort, secure: securePort }, [slapd.userEntry('linus')]),
  )
  const peer = await startOidcProvider()
  resources.defer(peer.close)
  const started = resources.move()
  return { directory, secure: securePort, peer, [Symbol.asyncDispose]: () => started.disposeAsync() }
}

async function withProvider(admin: Client, request: object, work: (id: string) => Promise<void>): Promise<void> {
  const { id } = expectStatus(await admin.post(path, request), 201)
  try {
    await work(id)
  } finally {
    await admin.delete(`${path}/${id}`)
  }
}

export async function signInByDirectory({ platform, providers }: Environment): Promise<void> {
  const { bindDn, bindPassword } = slapd.serviceAccount
  const { ca: caCertificate } = providers.directory
  const url = `ldaps://localhost:${providers.secure}`
  const request = { type: 'LDAP', url, bindDn, bindPassword, userSearchBase: slapd.usersDn, caCertificate }
  await withProvider(await platform.admin, request, async () => {
    const credentials = { username: 'linus', password: 'password of linus' }
    expectStatus(await platform.anonymous.post('/api/v1/auth/login', credentials), 200)
  })
}

export async function signInByOpenId({ platform, providers: { peer } }: Environment): Promise<void> {
  const client = { clientId: 'platform', clientSecret: 'a secret of at least 32 characters' }
  await withProvider(await platform.admin, { type: 'OIDC', issuer: peer.issuer, ...client }, async (id) => {
    const base = `/api/v1/auth/oidc/${id}`
    peer.open([{ ...client, redirectUri: `${portal}${base}/callback` }])
    peer.present('grace-1', { preferred_username: 'grace', email: 'grace@example.com', groups: [] })
    const { anonymous } = platform
    const redirect = await anonymous.get(`${base}/authorize`)
    const cookie = (redirect.headers.getSetCookie()[0] ?? '').split(';')[0] ?? ''
    const browser = new Browser(portal, () => Promise.reject(new Error('The browser must not open the portal.')))
    const callback = await browser.follow(redirect.headers.get('location') ?? '', new RegExp(`^${portal}`))
    const callbackResponse = await anonymous.get(`${callback.pathname}${callback.search}`, { cookie })
    const code = new URL(callbackResponse.headers.get('location') ?? '', portal).searchParams.get('code')
    const tokens = expectStatus(await anonymous.post('/api/v1/auth/oidc/token', { code }, { cookie }), 200)
    assert.equal(tokens.tokenType, 'Bearer')
  })
}
