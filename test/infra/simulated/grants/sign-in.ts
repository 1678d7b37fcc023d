import assert from 'node:assert/strict'
import { expectStatus } from '../../../conformance/support/answer.ts'
import type { Client } from '../../../conformance/support/client.ts'
import { startOidcProvider } from '../../../support/oidc-peer.ts'
import * as slapd from '../../../support/slapd.ts'
import type { Act } from './withholding.ts'

/** Sign-in with other people's accounts: a directory and an OpenID provider stand ready, each with one person. */

const path = '/api/v1/platform/identity/providers'
const portal = 'https://platform.example.com'

export type Peers = Awaited<ReturnType<typeof startPeers>>

/** Starts both. `allowed` is what a platform has to be let call. */
export async function startPeers([plain, secure]: readonly [number, number]) {
  await using parts = new AsyncDisposableStack()
  const directory = parts.use(await slapd.startSlapd({ plain, secure }, [slapd.userEntry('ada')]))
  const peer = await startOidcProvider()
  parts.defer(peer.close)
  const moved = parts.move()
  return { directory, secure, peer, [Symbol.asyncDispose]: () => moved.disposeAsync() }
}

/** Configures a provider for as long as the work takes. */
async function withProvider(admin: Client, request: object, work: (id: string) => Promise<void>): Promise<void> {
  const { id } = expectStatus(await admin.post(path, request), 201)
  try {
    await work(id)
  } finally {
    await admin.delete(`${path}/${id}`)
  }
}

export const byDirectory = ({ directory: { ca }, secure }: Peers): Act => ({
  title: 'somebody signs in whom a directory knows',
  isAlone: true,
  play: async ({ platform }) => {
    const { bindDn, bindPassword } = slapd.serviceAccount
    const url = `ldaps://localhost:${secure}`
    const request = { type: 'LDAP', url, bindDn, bindPassword, userSearchBase: slapd.usersDn, caCertificate: ca }
    await withProvider(await platform.admin, request, async () => {
      const credentials = { username: 'ada', password: 'password of ada' }
      expectStatus(await platform.anonymous.post('/api/v1/auth/login', credentials), 200)
    })
  },
})

export const byOpenId = ({ peer }: Peers): Act => ({
  title: 'somebody signs in whom an OpenID provider knows',
  isAlone: true,
  play: async ({ platform }) => {
    const secret = { clientId: 'platform', clientSecret: 'a secret of at least 32 characters' }
    await withProvider(await platform.admin, { type: 'OIDC', issuer: peer.issuer, ...secret }, async (id) => {
      const base = `/api/v1/auth/oidc/${id}`
      peer.open([{ ...secret, redirectUri: `${portal}${base}/callback` }])
      peer.present('grace-1', { preferred_username: 'grace', email: 'grace@example.com', groups: [] })
      const { anonymous } = platform
      const begun = await anonymous.get(`${base}/authorize`)
      const cookie = (begun.headers.getSetCookie()[0] ?? '').split(';')[0] ?? ''
      const back = await throughPeer(begun.headers.get('location') ?? '')
      const finished = await anonymous.get(`${back.pathname}${back.search}`, { cookie })
      const code = new URL(finished.headers.get('location') ?? '', portal).searchParams.get('code')
      const tokens = expectStatus(await anonymous.post('/api/v1/auth/oidc/token', { code }, { cookie }), 200)
      assert.equal(tokens.tokenType, 'Bearer')
    })
  },
})

/** Follows a browser through the provider, back to the portal. */
async function throughPeer(address: string): Promise<URL> {
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
