import assert from 'node:assert/strict'
import { expectStatus } from '../../../conformance/support/answer.ts'
import type { Client } from '../../../conformance/support/client.ts'
import { startOidcProvider } from '../../../support/oidc-peer.ts'
import * as slapd from '../../../support/slapd.ts'
import type { Environment } from './environment.ts'

const path = '/api/v1/platform/identity/providers'
const portal = 'https://platform.example.com'

export type IdentityProviders = Awaited<ReturnType<typeof startIdentityProviders>>

export async function startIdentityProviders([plain, secure]: readonly [number, number]) {
  await using resources = new AsyncDisposableStack()
  const directory = resources.use(await slapd.startSlapd({ plain, secure }, [slapd.userEntry('ada')]))
  const peer = await startOidcProvider()
  resources.defer(peer.close)
  const started = resources.move()
  return { directory, secure, peer, [Symbol.asyncDispose]: () => started.disposeAsync() }
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
    const credentials = { username: 'ada', password: 'password of ada' }
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
    const started = await anonymous.get(`${base}/authorize`)
    const cookie = (started.headers.getSetCookie()[0] ?? '').split(';')[0] ?? ''
    const callback = await followProvider(started.headers.get('location') ?? '')
    const finished = await anonymous.get(`${callback.pathname}${callback.search}`, { cookie })
    const code = new URL(finished.headers.get('location') ?? '', portal).searchParams.get('code')
    const tokens = expectStatus(await anonymous.post('/api/v1/auth/oidc/token', { code }, { cookie }), 200)
    assert.equal(tokens.tokenType, 'Bearer')
  })
}

async function followProvider(address: string): Promise<URL> {
  const jar = new Map<string, string>()
  let url = new URL(address)
  for (let hop = 0; hop < 10 && url.origin !== portal; hop++) {
    const cookie = [...jar].map((pair) => pair.join('=')).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const text of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(text) ?? []
      jar.set(name, value)
    }
    url = new URL(response.headers.get('location') ?? '', url)
  }
  return url
}
